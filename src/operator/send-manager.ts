import type { ClientRequest } from "node:http";
import { request } from "node:https";
import { ports } from "../api/constants.ts";
import type { ManagerArchive } from "../store/manager-archive.ts";
import type { OperatorIdentity } from "./operator-identity.ts";

/** What an instance made of the manager that it was sent. */
export type SendOutcome =
  /** All of it arrived and the connection ended: the instance is taking over, or it is gone. */
  | { kind: "sent" }
  /** Asking again later makes sense. */
  | { kind: "refused"; reason: string }
  | { kind: "failed"; reason: string };

export interface SendOptions {
  ip: string;
  /** PEM that the instance's certificate must chain to. */
  serverCa: string;
  identity: OperatorIdentity;
  archive: ManagerArchive;
  signal: AbortSignal;
  /** How long the connection may be silent. @default 60000 */
  idleMs?: number;
  /** @default - that of every instance */
  port?: number;
}

/** Answers by which an instance says that it is not the moment: an upgrade under way, or not yet sure who asks. */
const laterStatuses = [418, 503];
const longestReason = 500;

/** Streams a manager to an instance, which first has to agree; never rejects. There is no limit for the whole of it, only for silence. */
export function sendManager(options: SendOptions): Promise<SendOutcome> {
  const { archive, signal, idleMs = 60_000 } = options;
  return new Promise((resolve) => {
    let complete = false;
    const call = request({
      host: options.ip.replace(/%.*$/, ""),
      port: options.port ?? ports.status,
      path: "/update",
      method: "PUT",
      agent: false,
      ca: options.serverCa,
      cert: options.identity.certificate,
      key: options.identity.privateKey,
      minVersion: "TLSv1.3",
      // Instances are reached by address, their certificate names Services: the chain alone is checked.
      checkServerIdentity: () => undefined,
      headers: { "content-length": archive.size, expect: "100-continue" },
      signal,
    });
    call.setTimeout(idleMs, () => call.destroy(new Error(`the instance was silent for ${idleMs / 1_000} s`)));
    call.on("continue", () => {
      writeAll(archive, call).catch((error) => call.destroy(error));
    });
    call.on("finish", () => {
      complete = true;
    });
    call.on("error", (error) => resolve(outcomeOf(error, complete)));
    call.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text = (text + piece).slice(0, longestReason);
      });
      response.on("error", (error) => resolve(outcomeOf(error, false)));
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        const reason = `it answered ${status}: ${text.trim()}`;
        resolve({ kind: laterStatuses.includes(status) ? "refused" : "failed", reason });
      });
    });
    call.flushHeaders();
  });
}

/** One piece at a time, each of which is on its way before the next is read. */
async function writeAll(archive: ManagerArchive, call: ClientRequest): Promise<void> {
  for await (const piece of archive.read()) {
    if (call.destroyed) return;
    await new Promise<void>((resolve, reject) => call.write(piece, (error) => (error ? reject(error) : resolve())));
  }
  call.end();
}

/** A connection that ends after all was sent is how an instance says that it takes over. */
function outcomeOf(error: unknown, complete: boolean): SendOutcome {
  const { code, message } = error as NodeJS.ErrnoException;
  if (complete && (code === "ECONNRESET" || code === "EPIPE")) return { kind: "sent" };
  return { kind: "failed", reason: message || String(error) };
}
