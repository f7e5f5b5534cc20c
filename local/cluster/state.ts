import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ProcessIdentity } from "../process/identity.ts";

/** What is remembered about a local cluster between two commands. */
export interface ClusterState {
  format: 1;
  /** Loopback port on which the API server is reached from the machine. */
  apiPort?: number;
  /** Loopback port on which the S3 server is reached from the machine. */
  s3Port?: number;
  /** PID 1 of the cluster's namespaces, as seen from outside. */
  machine?: ProcessIdentity;
  nodes: number;
}

const empty: ClusterState = { format: 1, nodes: 1 };

/** Reads the state file's text; anything unreadable counts as a cluster that has never been started. */
export function parseState(text: string): ClusterState {
  try {
    const value: unknown = JSON.parse(text);
    return isState(value) ? value : { ...empty };
  } catch {
    return { ...empty };
  }
}

export function readState(file: string): ClusterState {
  try {
    return parseState(readFileSync(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { ...empty };
    throw error;
  }
}

/** Replaces the state file as a whole, so that a reader never sees half of it. */
export function writeState(file: string, state: ClusterState): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

function isState(value: unknown): value is ClusterState {
  if (typeof value !== "object" || value === null) return false;
  const { format, nodes, apiPort, s3Port, machine } = value as Record<string, unknown>;
  return (
    format === 1 &&
    Number.isInteger(nodes) &&
    (apiPort === undefined || Number.isInteger(apiPort)) &&
    (s3Port === undefined || Number.isInteger(s3Port)) &&
    (machine === undefined || isIdentity(machine))
  );
}

function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== "object" || value === null) return false;
  const { pid, startTime } = value as Record<string, unknown>;
  return Number.isInteger(pid) && typeof startTime === "string";
}
