import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { ControlPlane } from "../../../local/control-plane/control-plane.ts";
import type { KubeConnection } from "../../../src/kube/connection.ts";

/** One request as the proxy saw it. */
export interface SeenRequest {
  method: string;
  /** Path without the query. */
  path: string;
  query: URLSearchParams;
  watch: boolean;
  /** Monotonic milliseconds. */
  at: number;
}

export type Misbehaviour =
  | { kind: "answer"; status: number; headers?: Record<string, string>; body?: string }
  /** The connection breaks before the server sees anything. */
  | { kind: "reset" }
  /** The server carries the request out; its answer never arrives. */
  | { kind: "loseAnswer" }
  /** Nobody ever answers, and the server sees nothing. */
  | { kind: "hang" }
  /** The answer arrives in pieces of this many bytes. */
  | { kind: "split"; bytes: number }
  /** The connection breaks once this many bytes of the answer have passed. */
  | { kind: "truncate"; bytes: number }
  /** The answer begins, then nothing more arrives. */
  | { kind: "silence" };

/** Stands between a client and a real API server and spoils what it is told to. */
export interface FaultyProxy {
  /** How the client reaches it: plain HTTP; the proxy brings an administrator's certificate of its own. */
  connection: KubeConnection;
  seen: SeenRequest[];
  /** Decides for each request; `undefined` passes it on. */
  misbehave(decide: ((request: SeenRequest) => Misbehaviour | undefined) | undefined): void;
  /** Breaks every connection that is open now. */
  breakConnections(): void;
  stop(): Promise<void>;
}

/** Starts a proxy in front of the control plane. */
export async function startFaultyProxy(controlPlane: ControlPlane): Promise<FaultyProxy> {
  const agent = new Agent({
    keepAlive: true,
    ca: readFileSync(controlPlane.caFile),
    cert: readFileSync(controlPlane.adminCert),
    key: readFileSync(controlPlane.adminKey),
  });
  const seen: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let decide: ((request: SeenRequest) => Misbehaviour | undefined) | undefined;

  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? "/", "http://proxy");
    const request: SeenRequest = {
      method: incoming.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      watch: url.searchParams.get("watch") === "true",
      at: performance.now(),
    };
    seen.push(request);
    handle(incoming, outgoing, new URL(incoming.url ?? "/", controlPlane.url), agent, decide?.(request));
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const breakConnections = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    connection: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    seen,
    misbehave: (next) => {
      decide = next;
    },
    breakConnections,
    async stop() {
      breakConnections();
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function handle(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: URL,
  agent: Agent,
  fault: Misbehaviour | undefined,
): void {
  const client = incoming.socket;
  switch (fault?.kind) {
    case "reset":
      client.resetAndDestroy();
      return;
    case "hang":
      return;
    case "answer":
      outgoing.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
      outgoing.end(fault.body ?? "");
      return;
    default:
      forward(incoming, outgoing, target, agent, fault);
  }
}

function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: URL,
  agent: Agent,
  fault: Misbehaviour | undefined,
): void {
  const client = incoming.socket;
  const headers = { ...incoming.headers, host: target.host };
  const upstream = httpsRequest(target, { method: incoming.method, headers, agent }, (answer) => {
    if (fault?.kind === "loseAnswer") {
      answer.resume();
      answer.on("end", () => client.resetAndDestroy());
      return;
    }
    const { "content-length": _length, ...rest } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 502, rest);
    outgoing.flushHeaders();
    void relay(answer, outgoing, client, fault);
  });
  // A server that is away looks to the client as it would without the proxy: a broken connection.
  upstream.on("error", () => client.resetAndDestroy());
  outgoing.on("close", () => upstream.destroy());
  incoming.pipe(upstream);
}

async function relay(
  answer: IncomingMessage,
  outgoing: ServerResponse,
  client: Socket,
  fault: Misbehaviour | undefined,
) {
  let passed = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      if (fault?.kind === "silence") continue;
      if (fault?.kind === "truncate" && passed + chunk.length >= fault.bytes) {
        outgoing.write(chunk.subarray(0, fault.bytes - passed), () => client.resetAndDestroy());
        return;
      }
      passed += chunk.length;
      if (fault?.kind === "split") await writeInPieces(outgoing, chunk, fault.bytes);
      else outgoing.write(chunk);
    }
    outgoing.end();
  } catch {
    client.resetAndDestroy();
  }
}

async function writeInPieces(outgoing: ServerResponse, chunk: Buffer, bytes: number): Promise<void> {
  for (let start = 0; start < chunk.length; start += bytes) {
    outgoing.write(chunk.subarray(start, start + bytes));
    // Without a pause the kernel would join the pieces again.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
