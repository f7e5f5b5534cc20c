import { ensureImageArchives, type ImageArchive } from "../../images/archives.ts";
import { chooseEngine } from "../../images/engine.ts";
import { loadImageArchive } from "../cluster/load-image.ts";
import { type Report, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import type { DeployedImage } from "./manifests.ts";

/** Builds the archives of the images that are not up to date. */
export function buildImages(report: Report): Promise<ImageArchive[]> {
  return step(report, "Building the images", "about 3 minutes the first time", () =>
    ensureImageArchives({ log: (line) => report(`  ${line}`) }),
  );
}

/** Makes the images available in the local cluster under their own names. */
export async function loadImages(archives: readonly ImageArchive[], report: Report): Promise<DeployedImage[]> {
  await step(report, "Loading the images into the local cluster", "about 15 s the first time", async () => {
    for (const { path } of archives) await loadImageArchive(path);
  });
  return archives.map(({ name, digest }) => ({ name, target: name, digest }));
}

/** Pushes the images to a registry. */
export async function pushImages(
  archives: readonly ImageArchive[],
  registry: string,
  report: Report,
): Promise<DeployedImage[]> {
  const engine = await chooseEngine((line) => report(`  ${line}`));
  const images = archives.map(({ name, digest }) => ({ name, digest, target: registryName(name, digest, registry) }));
  for (const [index, { name, target }] of images.entries()) {
    const archive = archives[index];
    if (!archive) continue;
    await step(report, `Pushing ${target}`, "about 15 s, and what the network takes", async () => {
      try {
        await engine.pushArchive(archive.path, name, target);
      } catch (error) {
        throw new UserError(describePushFailure(registry, engine.kind, error));
      }
    });
  }
  return images;
}

/** Why a push failed, as the engine says it in the end, and what the user can do. */
export function describePushFailure(registry: string, engine: string, error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const reason = text.trim().split("\n").at(-1) ?? "";
  const [host] = registry.split("/");
  return `The images can't be pushed to ${registry}: ${reason}\nThat registry must answer and let you write there: log in with \`${engine} login ${host}\`, then run the command again.`;
}

/** Name of an image in a registry; the digest in its tag makes a cluster fetch a rebuilt one. */
export function registryName(name: string, digest: string, registry: string): string {
  const [repository = "", tag = "latest"] = name.replace(/^localhost\//, "").split(":");
  return `${registry}/${repository}:${tag}-${digest.replace("sha256:", "").slice(0, 12)}`;
}
