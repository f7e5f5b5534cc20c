import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { run } from "../process/run.ts";
import { toolPath } from "../tools/build.ts";
import { containerdSocket } from "./config/containerd.ts";

/** What identifies the image in a docker-archive, and its names. */
export interface ArchiveIdentity {
  config: string;
  names: string[];
}

/** A command line that another one is appended to, to run it elsewhere; empty for "here". */
export type CommandPrefix = readonly string[];

/** Reads the text of a docker-archive's manifest. */
export function parseArchiveManifest(text: string): ArchiveIdentity {
  const [first] = JSON.parse(text) as { Config?: unknown; RepoTags?: unknown }[];
  if (typeof first?.Config !== "string" || !Array.isArray(first.RepoTags) || first.RepoTags.length === 0) {
    throw new Error("manifest.json names no configuration or no tags; is it a docker-archive?");
  }
  return { config: first.Config, names: first.RepoTags.map(String) };
}

/**
 * Imports a docker-archive into the containerd of a node unless it holds that very image already.
 * `prefix` enters the node; the record file notes which archive each of the node's images came from.
 * Returns whether something was imported.
 */
export async function ensureImage(archive: string, recordFile: string, prefix: CommandPrefix = []): Promise<boolean> {
  const identity = parseArchiveManifest(
    await run("tar", ["--extract", "--to-stdout", "--file", archive, "manifest.json"]),
  );
  const record = readRecord(recordFile);
  const present = (await ctr(prefix, ["images", "list", "--quiet"])).split("\n");
  if (identity.names.every((name) => record[name] === identity.config && present.includes(name))) return false;
  const stdinFd = openSync(archive, "r");
  try {
    await ctr(prefix, ["images", "import", "--local", "-"], stdinFd);
  } finally {
    closeSync(stdinFd);
  }
  for (const name of identity.names) record[name] = identity.config;
  writeFileSync(recordFile, JSON.stringify(record, null, 2));
  return true;
}

function ctr(prefix: CommandPrefix, args: readonly string[], stdinFd?: number): Promise<string> {
  const fixed = [toolPath("ctr"), "--address", containerdSocket, "--namespace", "k8s.io"];
  const [command = "", ...rest] = [...prefix, ...fixed, ...args];
  return run(command, rest, stdinFd === undefined ? {} : { stdinFd });
}

function readRecord(file: string): Record<string, string> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  } catch {
    return {};
  }
}
