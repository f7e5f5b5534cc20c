import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ensureAptPackages } from "./apt.ts";
import { cacheFolder } from "./cache.ts";
import { doesRun, runCommand } from "./command.ts";

export interface ImageBuild {
  /** Name of the image with its tag. */
  name: string;
  dockerfile: string;
  context: string;
  /** A root file system as a tar file that becomes `BASE`, or none to start from scratch. */
  base?: string;
  args?: Readonly<Record<string, string>>;
}

/** What builds images here: a Docker engine when one answers, else buildah without a daemon. */
export interface ImageEngine {
  readonly kind: "docker" | "buildah";
  /** Builds and writes the image as a docker-archive; an image is to be built by one process at a time. */
  buildArchive(build: ImageBuild, archive: string): Promise<void>;
  /** Pushes an image from its archive under another name. */
  pushArchive(archive: string, name: string, target: string): Promise<void>;
}

/** Chooses the engine, installing buildah when it is needed and missing. */
export async function chooseEngine(log: (line: string) => void): Promise<ImageEngine> {
  if (await doesRun("docker", ["info"])) return docker;
  await ensureAptPackages(["buildah", "crun"], log);
  return createBuildah();
}

const buildArgs = (args: Readonly<Record<string, string>>): string[] =>
  Object.entries(args).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);

const docker: ImageEngine = {
  kind: "docker",
  async buildArchive({ name, dockerfile, context, base, args = {} }, archive) {
    const from = base && (await runCommand("docker", ["import", base])).trim();
    const all = from ? { ...args, BASE: from } : args;
    await runCommand("docker", ["build", "-t", name, "-f", dockerfile, ...buildArgs(all), context]);
    await runCommand("docker", ["save", "-o", archive, name]);
  },
  async pushArchive(archive, name, target) {
    await runCommand("docker", ["load", "-i", archive]);
    await runCommand("docker", ["tag", name, target]);
    await runCommand("docker", ["push", target]);
  },
};

async function createBuildah(): Promise<ImageEngine> {
  const folder = cacheFolder("buildah");
  await mkdir(folder, { recursive: true });
  const policy = join(folder, "policy.json");
  await writeFile(policy, `${JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] })}\n`);
  const storage = ["--root", join(folder, "root"), "--runroot", join(folder, "run"), "--storage-driver", "overlay"];
  const buildah = async (command: string, ...args: string[]) =>
    (await runCommand("buildah", [...storage, command, ...args])).trim();
  const isolation = ["--isolation", "chroot", "--signature-policy", policy];

  /**
   * Takes a root file system into the storage, where it stays for the next build. Named by its recipe, because the name
   * gets into the history of what is built on it.
   */
  async function importBase(tar: string): Promise<string> {
    const name = `localhost/base:${basename(tar, ".tar")}`;
    if (await buildah("images", "-q", name).catch(() => "")) return name;
    const container = await buildah("from", "--signature-policy", policy, "scratch");
    try {
      await buildah("add", container, tar, "/");
      await buildah("commit", "--signature-policy", policy, "--timestamp", "0", "--rm", container, name);
      return name;
    } catch (error) {
      await buildah("rm", container).catch(() => {});
      throw error;
    }
  }

  return {
    kind: "buildah",
    async buildArchive({ name, dockerfile, context, base, args = {} }, archive) {
      const all = buildArgs(base ? { ...args, BASE: await importBase(base) } : args);
      const fixed = ["--timestamp", "0", "--layers=false", "--pull=false"];
      try {
        await buildah("bud", ...isolation, ...fixed, "-t", name, "-f", dockerfile, ...all, context);
        await rm(archive, { force: true }); // docker-archive refuses to change an existing file
        await buildah("push", "--signature-policy", policy, name, `docker-archive:${archive}:${name}`);
      } finally {
        // The archive is what is kept; the storage would only take the space a second time.
        await buildah("rmi", "--force", name).catch(() => {});
      }
    },
    async pushArchive(archive, _name, target) {
      // No other build's name: the archive's own is taken over as it is, and the image is spoken of by its identity.
      const id = await buildah("pull", "--signature-policy", policy, "-q", `docker-archive:${archive}`);
      const local = /^(localhost|127\.|\[::1\])/.test(target);
      const tls = local ? ["--tls-verify=false"] : [];
      await buildah("push", "--signature-policy", policy, ...tls, id, `docker://${target}`);
      await buildah("rmi", "--force", id);
    },
  };
}
