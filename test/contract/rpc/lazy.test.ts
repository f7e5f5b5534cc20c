import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..", "src");

async function packagesOf(module: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [join(root, module)],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "silent",
  });
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
  return imports.map(({ path }) => path).filter((path) => /^@(grpc|bufbuild)/.test(path));
}

const light = [
  "rpc/discovery.ts",
  "rpc/lifecycle-patch.ts",
  "rpc/status.ts",
  "ports/plugin.ts",
  ...readdirSync(join(root, "rpc/calls")).map((name) => `rpc/calls/${name}`),
];

describe("modules that programs load at their start", () => {
  it.each(light)("%s brings no gRPC library with it", async (module) => {
    expect(await packagesOf(module)).toEqual([]);
  });

  it("the pool does, which is why it is imported when a cluster names plugins", async () => {
    expect(await packagesOf("rpc/pool.ts")).toContain("@grpc/grpc-js");
  });
});
