// The server side of the adapter: handlers over plain values on a unix socket or TCP with mutual TLS.
import { lstat, mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { listenTls, type TlsListenOptions } from "./server-tls.ts";
import type { Rpc } from "./wire/rpc.ts";

/** What a handler knows of its call. */
export interface CallContext {
  /** Fires when the client gives up, its deadline passes or its connection breaks. */
  readonly signal: AbortSignal;
  /** For example `WAL.Archive`. */
  readonly label: string;
}

/** A call bound to what answers it. */
export interface Handler {
  readonly service: string;
  readonly path: string;
  readonly label: string;
  /** Request bytes to response bytes. */
  serve(bytes: Uint8Array, context: CallContext): Promise<Uint8Array>;
}

/** A failure as the client is to see it: a status name and its text. */
export interface StatusText {
  code: number;
  details: string;
}

export interface SocketListenOptions {
  kind: "socket";
  /** Absolute path; a left-over file is replaced. */
  path: string;
}

export type ListenOptions = SocketListenOptions | TlsListenOptions;

export interface RpcServerOptions {
  handlers: readonly Handler[];
  listen: ListenOptions;
  /** Turns what a handler threw into a status. */
  toStatus(error: unknown): StatusText;
}

export interface RpcServer {
  /** For TCP the bound host and port, for a socket its path. */
  readonly address: string;
  /** TLS only: reads the certificate files now, instead of within seconds. */
  reload(): Promise<void>;
  /** Accepts no more calls, lets running ones end until the grace is over, then cuts them. */
  stop(options?: { graceMs?: number }): Promise<void>;
}

/** Binds a call to the function that answers it. */
export function bindHandler<Req, In, Res>(
  rpc: Rpc<Req, In, Res>,
  answer: (request: In, context: CallContext) => Promise<Res> | Res,
): Handler {
  return {
    service: rpc.service,
    path: rpc.path,
    label: rpc.label,
    serve: async (bytes, context) => rpc.encodeResponse(await answer(rpc.decodeRequest(bytes), context)),
  };
}

/** Starts to listen. */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { listen } = options;
  const server = new Server();
  for (const handler of options.handlers) {
    server.register<Uint8Array, Uint8Array>(
      handler.path,
      (call: ServerUnaryCall<Uint8Array, Uint8Array>, answer: sendUnaryData<Uint8Array>) => {
        void serveCall(handler, call, answer, options.toStatus);
      },
      (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes) => bytes,
      "unary",
    );
  }
  if (listen.kind === "socket") {
    await removeStaleSocket(listen.path);
    await bind(server, `unix://${listen.path}`, ServerCredentials.createInsecure());
    return { address: listen.path, reload: async () => {}, stop: (stopping) => stop(server, stopping) };
  }
  const tls = await listenTls(listen);
  try {
    const address = await bindTcp(server, listen.address, tls.credentials);
    return {
      address,
      reload: tls.reload,
      stop: async (stopping) => {
        tls.stop();
        await stop(server, stopping);
      },
    };
  } catch (error) {
    tls.stop();
    throw error;
  }
}

async function serveCall(
  handler: Handler,
  call: ServerUnaryCall<Uint8Array, Uint8Array>,
  answer: sendUnaryData<Uint8Array>,
  toStatus: RpcServerOptions["toStatus"],
): Promise<void> {
  const gone = new AbortController();
  call.on("cancelled", () => gone.abort(new Error("the client gave up, or its connection broke")));
  try {
    answer(null, await handler.serve(call.request, { signal: gone.signal, label: handler.label }));
  } catch (error) {
    answer(toStatus(error));
  }
}

/** Go's `:9090` means both address families; where IPv6 is off only the other one can be had. */
async function bindTcp(server: Server, address: string, credentials: ServerCredentials): Promise<string> {
  const port = Number(/:(\d+)$/.exec(address)?.[1] ?? Number.NaN);
  if (Number.isNaN(port)) throw new Error(`server address ${address}: no port; write host:port`);
  const host = address.slice(0, address.lastIndexOf(":"));
  if (host !== "") return `${host}:${await bind(server, address, credentials)}`;
  try {
    return `[::]:${await bind(server, `[::]:${port}`, credentials)}`;
  } catch {
    return `0.0.0.0:${await bind(server, `0.0.0.0:${port}`, credentials)}`;
  }
}

function bind(server: Server, target: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(target, credentials, (error, port) => {
      if (error) reject(new Error(`the plugin cannot listen on ${target}: ${error.message}`, { cause: error }));
      else resolve(port);
    });
  });
}

/** A dead server's file would make the bind fail. Anything but a socket was put there by a person and stays. */
async function removeStaleSocket(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!found) return;
  if (!found.isSocket()) throw new Error(`${path} exists and is no socket; remove it, or choose another folder`);
  await rm(path, { force: true });
}

function stop(server: Server, { graceMs = 30_000 }: { graceMs?: number } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
