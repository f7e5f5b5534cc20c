// One channel to one plugin, from opening to closing. The pool decides when a connection is opened and retired; here is
// what it knows of the peer, and who still uses it.
import { stat } from "node:fs/promises";
import { type Client, connectivityState } from "@grpc/grpc-js";
import { type Plugin, type PluginCallOptions, PluginError } from "../ports/plugin.ts";
import { openChannel } from "./channel.ts";
import { defaultDeadlineMs } from "./deadlines.ts";
import type { PluginEndpoint } from "./endpoint.ts";
import { loadIdentity } from "./load-identity.ts";
import { createLoadedPlugin } from "./loaded-plugin.ts";
import { callUnary } from "./unary.ts";
import { identityRpcs } from "./wire/identity.ts";
import type { Rpc } from "./wire/rpc.ts";

/** Time that the identity of a new connection may take, milliseconds per call. */
const identityCallMs = 5_000;

export class Connection {
  readonly #endpoint: PluginEndpoint;
  readonly #client: Client;
  readonly #ended = new AbortController();
  #plugin: Promise<Plugin> | undefined;
  #borrowers = 0;
  #retired = false;
  #closed: (() => void) | undefined;
  /** Resolves when the channel is closed. */
  readonly closed: Promise<void>;
  /** What identified the socket file when this connection was made; empty for TCP. */
  readonly socketFile: string;

  private constructor(endpoint: PluginEndpoint, socketFile: string) {
    this.#endpoint = endpoint;
    this.socketFile = socketFile;
    this.#client = openChannel(endpoint);
    this.closed = new Promise((resolve) => {
      this.#closed = resolve;
    });
    this.#watch();
  }

  /** A lazy connection: nothing is dialled before the first call. */
  static async open(endpoint: PluginEndpoint): Promise<Connection> {
    return new Connection(endpoint, await identifySocketFile(endpoint));
  }

  /** The plugin with its identity, asked once per physical connection. Does not end when one of its callers gives up. */
  plugin(): Promise<Plugin> {
    if (this.#plugin) return this.#plugin;
    const loading = this.#load();
    this.#plugin = loading;
    loading.catch(() => {
      if (this.#plugin === loading) this.#plugin = undefined;
    });
    return loading;
  }

  /** Fails unless the plugin says that it is ready. */
  async probe(options: PluginCallOptions): Promise<void> {
    const ready = await this.#call(identityRpcs.probe, undefined, options);
    if (ready) return;
    throw new PluginError(`plugin ${this.#endpoint.name} (${where(this.#endpoint)}) says that it is not ready yet`, {
      plugin: this.#endpoint.name,
      operation: "Identity.Probe",
      kind: "unavailable",
    });
  }

  /** The next `plugin()` asks for the identity again. */
  forgetIdentity(): void {
    this.#plugin = undefined;
  }

  /** Counts one more user; the answer takes it back, once. */
  borrow(): () => void {
    this.#borrowers++;
    let returned = false;
    return () => {
      if (returned) return;
      returned = true;
      this.#borrowers--;
      if (this.#retired && this.#borrowers === 0) this.#close();
    };
  }

  /** Closes the channel when the last user has returned it. */
  retire(): void {
    this.#retired = true;
    if (this.#borrowers === 0) this.#close();
  }

  /** Ends the calls that still run, and closes. */
  kill(): void {
    this.#ended.abort(new Error("the connection was closed"));
    this.#close();
  }

  async #load(): Promise<Plugin> {
    const identity = await loadIdentity((rpc, request) => this.#call(rpc, request, { deadlineMs: identityCallMs }));
    const { name } = this.#endpoint;
    if (identity.metadata.name !== name) {
      throw new PluginError(
        `the plugin at ${where(this.#endpoint)} is registered as ${name} but calls itself ${identity.metadata.name}; ` +
          "Service label or socket file, metadata and spec.plugins must have one name",
        { plugin: name, operation: "Identity.GetPluginMetadata", kind: "protocol" },
      );
    }
    return createLoadedPlugin(name, identity, (rpc, request, options) => this.#call(rpc, request, options ?? {}));
  }

  #call<Req, In, Res>(rpc: Rpc<Req, In, Res>, request: Req, options: PluginCallOptions): Promise<Res> {
    const { deadlineMs = defaultDeadlineMs(this.#endpoint, rpc.label), signal } = options;
    const ended = this.#ended.signal;
    return callUnary(this.#client, { plugin: this.#endpoint.name, where: where(this.#endpoint) }, rpc, request, {
      deadlineMs,
      signal: signal ? AbortSignal.any([ended, signal]) : ended,
    });
  }

  /** The library reconnects silently; another process may then be behind the address, with other capabilities. */
  #watch(): void {
    const channel = this.#client.getChannel();
    const before = channel.getConnectivityState(false);
    if (before === connectivityState.SHUTDOWN) return;
    channel.watchConnectivityState(before, Number.POSITIVE_INFINITY, () => {
      if (before === connectivityState.READY) this.forgetIdentity();
      this.#watch();
    });
  }

  #close(): void {
    if (!this.#closed) return;
    this.#client.close();
    this.#closed();
    this.#closed = undefined;
  }
}

/** Another file at the same path is another server, even while the old connection still works. */
export async function identifySocketFile(endpoint: PluginEndpoint): Promise<string> {
  if (endpoint.kind !== "socket") return "";
  try {
    const { dev, ino, birthtimeNs } = await stat(endpoint.path, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const text = code === "ENOENT" ? "the socket file does not exist" : `the socket file cannot be examined (${code})`;
    throw new PluginError(`plugin ${endpoint.name} (${endpoint.path}): ${text}; is its container running?`, {
      plugin: endpoint.name,
      operation: "connect",
      kind: "unavailable",
      cause,
    });
  }
}

function where(endpoint: PluginEndpoint): string {
  return endpoint.kind === "socket" ? endpoint.path : endpoint.address;
}
