import { execFile } from "node:child_process";
import { join } from "node:path";
import { pythonEnvironment } from "../../local/tools/python-environment.ts";
import type { S3Server } from "./s3-server.ts";

const packageName = "barman[cloud,azure,google,snappy,zstandard,lz4]==3.19.1";

/** How one of Barman's tools ended. */
export interface ToolResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Barman's own cloud tools, pointed at one S3 server. */
export interface BarmanTools {
  /** Runs `barman-cloud-NAME` with options for the endpoint in front of the given ones. */
  run(name: string, args: readonly string[]): Promise<ToolResult>;
  /** Python of the same environment, with Barman's modules at hand; the code's stdout. */
  python(code: string, args?: readonly string[]): Promise<ToolResult>;
}

/** Finds the tools; installs them into the cache when they are not there. */
export function barmanTools(server: Pick<S3Server, "endpoint" | "accessKey" | "secretKey">): Promise<BarmanTools> {
  const env = {
    AWS_ACCESS_KEY_ID: server.accessKey,
    AWS_SECRET_ACCESS_KEY: server.secretKey,
    AWS_DEFAULT_REGION: "us-east-1",
    // As the operand images do for services that do not know the newer checksums.
    AWS_REQUEST_CHECKSUM_CALCULATION: "when_required",
    AWS_RESPONSE_CHECKSUM_VALIDATION: "when_required",
  };
  return barmanToolsWith(["--cloud-provider", "aws-s3", "--endpoint-url", server.endpoint], env);
}

/** The tools with options in front of the given ones, and what their libraries read from the environment. */
export async function barmanToolsWith(
  options: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<BarmanTools> {
  const environment = await pythonEnvironment("barman-3.19.1", [packageName]);
  const env = {
    PATH: process.env["PATH"],
    HOME: process.env["HOME"],
    LC_ALL: "C.UTF-8",
    TZ: "UTC",
    ...variables,
  };
  const run = (file: string, args: readonly string[]) =>
    new Promise<ToolResult>((resolve) => {
      execFile(file, [...args], { env, encoding: "utf8", maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
        resolve({ code, stdout, stderr });
      });
    });
  return {
    run: (name, args) => run(join(environment, "bin", `barman-cloud-${name}`), [...options, ...args]),
    python: (code, args = []) => run(join(environment, "bin/python"), ["-c", code, ...args]),
  };
}
