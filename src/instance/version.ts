import { dirname } from "node:path";
import { compatibleVersion } from "../api/constants.ts";
import { readManagerManifest } from "../store/manager-archive.ts";

/** What `version` prints, for the program in this file. */
export async function formatVersion(program: string): Promise<string> {
  const manifest = await readManagerManifest(dirname(program)).catch(() => undefined);
  return `Build: {Version:${compatibleVersion} Commit:${manifest?.commit ?? "none"} Date:unknown}`;
}
