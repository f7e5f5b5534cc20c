// Barman's tools of a version that asks for a newer Python than Debian 12 has: in a root file system of Debian 13.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianMirror, ensureAptPackages } from "../../images/apt.ts";
import { runCommand } from "../../images/command.ts";
import { withFileLock } from "../../images/lock.ts";
import { cacheRoot } from "../../local/tools/cache.ts";
import type { BarmanTools, ToolResult } from "./barman.ts";
import type { S3Server } from "./s3-server.ts";

const version = "3.20.1";
const packages = ["python3", "python3-boto3", "python3-psycopg2", "python3-dateutil", "python3-snappy", "python3-lz4"];

/** Modules of the tools whose names are not those of the commands. */
const modules: Readonly<Record<string, string>> = { "wal-archive": "walarchive", "wal-restore": "walrestore" };

/** Finds the tools, pointed at one S3 server; installs Debian and them into the cache when they are not there. Needs root. */
export async function newerBarmanTools(
  server: Pick<S3Server, "endpoint" | "accessKey" | "secretKey">,
): Promise<Pick<BarmanTools, "run">> {
  const root = await ensureRoot();
  const env = {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    LC_ALL: "C.UTF-8",
    TZ: "UTC",
    HOME: "/root",
    PYTHONPATH: "/opt/barman",
    AWS_ACCESS_KEY_ID: server.accessKey,
    AWS_SECRET_ACCESS_KEY: server.secretKey,
    AWS_DEFAULT_REGION: "us-east-1",
    AWS_REQUEST_CHECKSUM_CALCULATION: "when_required",
    AWS_RESPONSE_CHECKSUM_VALIDATION: "when_required",
  };
  const endpoint = ["--cloud-provider", "aws-s3", "--endpoint-url", server.endpoint];
  return {
    run(name, args) {
      const module = `barman.clients.cloud_${modules[name] ?? name.replaceAll("-", "_")}`;
      const code = `import sys; from ${module} import main; main(sys.argv[1:])`;
      return inside(root, ["python3", "-c", code, ...endpoint, ...args], env);
    },
  };
}

/** Runs a command in the root file system, which shows the folder of this machine's temporary files in its own place. */
function inside(root: string, command: readonly string[], env: Record<string, string>): Promise<ToolResult> {
  const script =
    'root=$1; shift; mkdir -p "$root$TMP_SEEN" && mount --bind "$TMP_SEEN" "$root$TMP_SEEN" && exec chroot "$root" "$@"';
  const args = ["--mount", "--propagation", "private", "sh", "-c", script, "sh", root, ...command];
  const options = { env: { ...env, TMP_SEEN: tmpdir() }, encoding: "utf8", maxBuffer: 64 << 20 } as const;
  return new Promise((resolve) => {
    execFile("unshare", args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
      resolve({ code, stdout, stderr });
    });
  });
}

async function ensureRoot(): Promise<string> {
  const folder = join(cacheRoot(), "python", `debian-13-barman-${version}`);
  const [root, done] = [join(folder, "root"), join(folder, "complete")];
  if (existsSync(done)) return root;
  await mkdir(folder, { recursive: true });
  await withFileLock(`${folder}.lock`, async () => {
    if (existsSync(done)) return;
    await ensureAptPackages(["mmdebstrap"]);
    await rm(root, { recursive: true, force: true });
    const without = ["doc", "man", "locale"].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
    // Into a tar file: in a folder of ours mmdebstrap would mount this machine's own /proc and /dev, which outlive it when it is killed.
    const recipe = ["--variant=minbase", "--mode=root", "--format=tar", `--include=${packages.join(",")}`];
    const aptOptions = ['--aptopt=APT::Install-Recommends "false"', '--aptopt=Acquire::Check-Valid-Until "false"'];
    const tar = join(folder, "root.tar");
    await runCommand("mmdebstrap", [...recipe, ...aptOptions, ...without, "trixie", tar, await debianMirror()]);
    await mkdir(root);
    await runCommand("tar", ["--directory", root, "--extract", "--file", tar]);
    await rm(tar);
    const target = join(root, "opt/barman");
    const choice = [
      "--no-deps",
      "--no-compile",
      "--ignore-requires-python",
      "--python-version",
      "3.13",
      "--only-binary=:all:",
      "--target",
      target,
    ];
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...choice];
    await runCommand("python3", [...pip, `barman==${version}`]);
    await writeFile(done, "");
  });
  return root;
}
