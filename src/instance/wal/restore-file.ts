// One WAL file from whoever has it: the plugins in turn, then the object store that the Cluster names.

import type { Cluster } from "../../api/generated/cluster.ts";
import type { WalError } from "../../archive/wal-error.ts";
import type { WalRestorePurpose, WalSourceAnswer } from "../../plan/instance/wal.ts";
import type { InTreeSource } from "../../plan/instance/wal-sources.ts";
import { PluginError } from "../../ports/plugin.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import { withType } from "./archive-file.ts";
import type { InTreeWal } from "./wal-sources.ts";

export interface RestoreFileDeps {
  plugins: PodPlugins;
  inTree: () => Promise<InTreeWal>;
  /** Bytes of a file; `undefined` when it does not exist. */
  sizeOf(path: string): Promise<number | undefined>;
}

export interface RestoreFileRequest {
  cluster: Cluster;
  name: string;
  /** Absolute path. */
  destination: string;
  purpose: WalRestorePurpose;
  /** In the order in which they are asked; without a `required` one's answer nothing is known of the file. */
  plugins: readonly { name: string; required: boolean }[];
  inTree: InTreeSource;
}

export interface SourceReport {
  answer: WalSourceAnswer;
  message: string;
}

/** Asks the sources until one gives the file; one report for each that was asked. */
export async function restoreFile(deps: RestoreFileDeps, request: RestoreFileRequest): Promise<SourceReport[]> {
  const reports: SourceReport[] = [];
  const present = new Set(await deps.plugins.names());
  for (const { name, required } of request.plugins) {
    if (!present.has(name) && !required) continue;
    const report = present.has(name)
      ? await askPlugin(deps, request, name, required)
      : unknown(`plugin ${name} has no socket in this pod`);
    if (report) reports.push(report);
    if (report?.answer === "restored") return reports;
  }
  const { inTree } = request;
  if (inTree.kind === "invalid") reports.push(unknown(inTree.reason));
  if (inTree.kind === "archive") reports.push(await askStore(deps, request, inTree));
  return reports;
}

function unknown(message: string): SourceReport {
  return { answer: "unknown", message };
}

async function askPlugin(
  deps: RestoreFileDeps,
  request: RestoreFileRequest,
  name: string,
  required: boolean,
): Promise<SourceReport | undefined> {
  try {
    return await deps.plugins.use([name], async ({ plugins: [plugin] }) => {
      if (!plugin?.capabilities.wal.includes("TYPE_RESTORE_WAL")) {
        return required ? unknown(`plugin ${name} does not restore WAL`) : undefined;
      }
      const call = {
        cluster: withType(request.cluster),
        sourceWalName: request.name,
        destinationFileName: request.destination,
        mode: request.purpose === "rewind" ? ("rewind" as const) : ("recovery" as const),
      };
      await plugin.wal.restore(call, { deadlineMs: null });
      // PostgreSQL would take an empty file for the end of the WAL.
      if (((await deps.sizeOf(request.destination)) ?? 0) > 0) return { answer: "restored" as const, message: "" };
      return unknown(`plugin ${name} says that it restored ${request.name}, but left no bytes at its destination`);
    });
  } catch (error) {
    return { answer: pluginAnswer(error), message: textOf(error) };
  }
}

/** Only what a plugin says for certain counts as absence; whatever else went wrong says nothing about the file. */
function pluginAnswer(error: unknown): WalSourceAnswer {
  if (!(error instanceof PluginError) || error.operation !== "WAL.Restore") return "unknown";
  if (error.status === "OUT_OF_RANGE") return "endOfWal";
  // A name that is none of a WAL file's is in no archive.
  return error.kind === "notFound" || error.status === "INVALID_ARGUMENT" ? "absent" : "unknown";
}

async function askStore(
  deps: RestoreFileDeps,
  { name, destination, purpose }: RestoreFileRequest,
  { archive, streamingAvailable }: InTreeSource & { kind: "archive" },
): Promise<SourceReport> {
  try {
    const engine = await deps.inTree();
    const mode = purpose === "rewind" ? "rewind" : "recovery";
    await engine.restore(archive, { name, destination, streamingAvailable, mode });
    return { answer: "restored", message: "" };
  } catch (error) {
    return { answer: storeAnswer(error), message: textOf(error) };
  }
}

function storeAnswer(error: unknown): WalSourceAnswer {
  if (!(error instanceof Error) || error.name !== "WalError") return "unknown";
  const { kind } = error as WalError;
  if (kind === "endOfWal") return "endOfWal";
  return kind === "notFound" || kind === "badName" ? "absent" : "unknown";
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
