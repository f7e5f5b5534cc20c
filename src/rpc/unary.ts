import { type Client, type ClientUnaryCall, Metadata, type ServiceError } from "@grpc/grpc-js";
import { type PluginCallOptions, PluginError } from "../ports/plugin.ts";
import { classifyStatus, statusCodes, statusName } from "./status.ts";
import type { Rpc } from "./wire/rpc.ts";
import { WireError } from "./wire/wire-error.ts";

/** Who is called, for messages; `where` is the address or the socket. */
export interface Callee {
  plugin: string;
  where: string;
}

/** One call. Settles at the latest at the deadline or when the signal fires; every failure is a `PluginError`. */
export function callUnary<Req, In, Res>(
  client: Client,
  callee: Callee,
  rpc: Rpc<Req, In, Res>,
  request: Req,
  options: PluginCallOptions,
): Promise<Res> {
  return new Promise((resolve, reject) => {
    const { signal, deadlineMs } = options;
    if (signal?.aborted) {
      reject(cancelled(callee, rpc, signal));
      return;
    }
    let payload: Uint8Array;
    try {
      payload = rpc.encodeRequest(request);
    } catch (cause) {
      reject(failure(callee, rpc, "refused", `the request cannot be sent: ${textOf(cause)}`, cause));
      return;
    }
    let call: ClientUnaryCall | undefined;
    const abort = () => call?.cancel();
    const finish = (error: ServiceError | null, answer?: Uint8Array) => {
      signal?.removeEventListener("abort", abort);
      if (error) reject(signal?.aborted ? cancelled(callee, rpc, signal) : fromStatus(callee, rpc, error, deadlineMs));
      else settleAnswer(callee, rpc, answer, resolve, reject);
    };
    const callOptions = typeof deadlineMs === "number" ? { deadline: Date.now() + deadlineMs } : {};
    try {
      call = client.makeUnaryRequest<Uint8Array, Uint8Array>(
        rpc.path,
        (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
        (bytes) => bytes,
        payload,
        new Metadata(),
        callOptions,
        finish,
      );
      signal?.addEventListener("abort", abort, { once: true });
    } catch (cause) {
      // The library throws, instead of answering, when the channel was closed before.
      reject(failure(callee, rpc, "unavailable", textOf(cause), cause));
    }
  });
}

function settleAnswer<Req, In, Res>(
  callee: Callee,
  rpc: Rpc<Req, In, Res>,
  answer: Uint8Array | undefined,
  resolve: (value: Res) => void,
  reject: (reason: PluginError) => void,
): void {
  try {
    resolve(rpc.decodeResponse(answer ?? new Uint8Array()));
  } catch (cause) {
    const kind = cause instanceof WireError ? "protocol" : "refused";
    reject(failure(callee, rpc, kind, `the answer is unusable: ${textOf(cause)}`, cause));
  }
}

function fromStatus(
  callee: Callee,
  rpc: { label: string },
  error: ServiceError,
  deadlineMs: number | null | undefined,
): PluginError {
  const code = error.code ?? statusCodes.UNKNOWN;
  const status = statusName(code);
  const late = status === "DEADLINE_EXCEEDED" && typeof deadlineMs === "number";
  const text = late ? `no answer within ${Math.round(deadlineMs)} ms` : `${status}: ${error.details || error.message}`;
  return failure(callee, rpc, classifyStatus(code, error.details), text, error, status);
}

function cancelled(callee: Callee, rpc: { label: string }, signal: AbortSignal): PluginError {
  return failure(callee, rpc, "unavailable", `given up: ${textOf(signal.reason)}`, signal.reason, "CANCELLED");
}

function failure(
  callee: Callee,
  rpc: { label: string },
  kind: PluginError["kind"],
  text: string,
  cause: unknown,
  status?: string,
): PluginError {
  return new PluginError(`plugin ${callee.plugin} (${callee.where}), ${rpc.label}: ${text}`, {
    plugin: callee.plugin,
    operation: rpc.label,
    kind,
    cause,
    ...(status === undefined ? {} : { status }),
  });
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
