import { Agent, type ErrorEvent, WebSocket } from "undici";
import { type ContainerRef, ExecError, type ExecResult, type PodExec } from "../ports/pod-exec.ts";
import type { KubeConnection } from "./connection.ts";
import { execChannels, readExecStatus } from "./exec-status.ts";

const protocol = "v5.channel.k8s.io";
/** What a program may write before the rest is dropped, in bytes. */
const outputLimit = 64 * 1024;

/** Runs programs in containers over a WebSocket, as kubectl does. */
export function createPodExec(connection: KubeConnection): PodExec {
  return {
    async run(target, command, { signal, timeoutMs = 30_000 }) {
      const dispatcher = new Agent({
        connect: {
          rejectUnauthorized: !connection.insecureSkipTlsVerify,
          ...(connection.ca === undefined ? {} : { ca: connection.ca }),
          ...(connection.clientCert === undefined ? {} : { cert: connection.clientCert }),
          ...(connection.clientKey === undefined ? {} : { key: connection.clientKey }),
          ...(connection.serverName === undefined ? {} : { servername: connection.serverName }),
        },
      });
      const token = connection.token?.();
      const socket = new WebSocket(execUrl(connection.server, target, command), {
        protocols: protocol,
        dispatcher,
        ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
      });
      const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      // Nothing is run before the session is open.
      let isOpen = false;
      socket.addEventListener("open", () => (isOpen = true));
      try {
        return await readSession(socket, ends);
      } catch (cause) {
        const text = cause instanceof Error ? cause.message : String(cause);
        const mayHaveRun = isOpen || ends.aborted;
        throw new ExecError(`${command[0]} in pod ${target.namespace}/${target.pod}: ${text}`, { mayHaveRun, cause });
      } finally {
        socket.close();
        await dispatcher.destroy();
      }
    },
  };
}

function execUrl(server: string, { namespace, pod, container }: ContainerRef, command: readonly string[]): URL {
  const url = new URL(server);
  url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/namespaces/${namespace}/pods/${pod}/exec`;
  for (const part of command) url.searchParams.append("command", part);
  for (const [name, value] of Object.entries({ container, stdout: "true", stderr: "true" })) {
    url.searchParams.set(name, value);
  }
  return url;
}

function readSession(socket: WebSocket, signal: AbortSignal): Promise<ExecResult> {
  socket.binaryType = "arraybuffer";
  const output = { [execChannels.stdout]: "", [execChannels.stderr]: "", [execChannels.error]: "" };
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("given up"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    socket.addEventListener("message", ({ data }) => {
      const bytes = Buffer.from(data as ArrayBuffer);
      const channel = bytes[0] as keyof typeof output;
      if (!(channel in output) || output[channel].length > outputLimit) return;
      output[channel] += bytes.subarray(1).toString("utf8");
    });
    socket.addEventListener("error", (event: ErrorEvent) =>
      reject(new Error(event.message || "the connection to the API server failed", { cause: event.error })),
    );
    socket.addEventListener("close", ({ reason }) => {
      try {
        if (output[execChannels.error] === "") throw new Error(reason || "the session ended without a result");
        const exitCode = readExecStatus(output[execChannels.error]);
        resolve({ stdout: output[execChannels.stdout], stderr: output[execChannels.stderr], exitCode });
      } catch (error) {
        reject(error);
      }
    });
  });
}
