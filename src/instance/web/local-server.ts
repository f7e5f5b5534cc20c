import { createServer } from "node:http";
import type { InstanceContext } from "../instance-context.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { archivingCondition } from "../wal/archiving-condition.ts";
import { type HttpAnswer, type HttpHandler, jsonAnswer, listenerOf, readBody, textAnswer } from "./http-answer.ts";
import { close, listen } from "./remote-server.ts";

async function reportArchiving(status: Pick<ClusterStatusWriter, "setCondition">, body: string): Promise<HttpAnswer> {
  let error: unknown;
  try {
    error = (JSON.parse(body) as { error?: unknown }).error ?? "";
  } catch {
    return textAnswer(400, "the body is not JSON");
  }
  if (typeof error !== "string") return textAnswer(400, "the field error is not text");
  await status.setCondition(archivingCondition(error));
  return textAnswer(200, "OK");
}

export function localHandler(
  context: InstanceContext,
  status: Pick<ClusterStatusWriter, "setCondition">,
  startBackup: (name: string) => Promise<HttpAnswer>,
): HttpHandler {
  return async (request, url) => {
    const { pathname } = url;
    if (pathname === "/cache/cluster") {
      const { cluster } = context.state;
      return cluster ? jsonAnswer(200, cluster) : textAnswer(404, "cluster not found");
    }
    // Environments of object stores: credentials stay in this process, which needs no tool to have them.
    if (pathname.startsWith("/cache/")) return textAnswer(404, "not found");
    if (pathname === "/pg/backup") return startBackup(url.searchParams.get("name") ?? "");
    if (pathname === "/cluster/status/condition/wal/archive") {
      if (request.method !== "POST") return textAnswer(400, "only POST is answered here");
      return reportArchiving(status, await readBody(request));
    }
    return undefined;
  };
}

/** The interface on port 8010 for programs in the same pod. */
export function createLocalServer(handler: HttpHandler): {
  listen(port: number): Promise<number>;
  close(): Promise<void>;
} {
  const server = createServer({ headersTimeout: 20_000, requestTimeout: 20_000 }, listenerOf(handler));
  return { listen: (port) => listen(server, port, "127.0.0.1"), close: () => close(server) };
}
