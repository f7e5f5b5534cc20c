// The plugins of a process. Load this module by a dynamic import where a cluster names plugins: it brings the gRPC library
// (17 MB) with it.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Random } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { findPluginError, type Plugin, PluginError, type PluginPool, type PluginSession } from "../ports/plugin.ts";
import { type RetryPolicy, retry } from "../runtime/backoff.ts";
import { Connection, identifySocketFile } from "./connection.ts";
import { endpointFingerprint, type PluginEndpoint, type SocketEndpoint } from "./endpoint.ts";

export interface GrpcPluginPoolOptions {
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** Where endpoints come from; each source replaces its own ones only. */
export type EndpointSource = "services" | "sockets";

/** What a replacement of endpoints changed. */
export interface EndpointChanges {
  added: readonly string[];
  /** Another address or other certificates; the old connection is drained in the background. */
  changed: readonly string[];
  removed: readonly string[];
  /** Names that the other source has already. */
  rejected: readonly string[];
}

/** A pool whose endpoints can be changed while it is in use. */
export interface GrpcPluginPool extends PluginPool {
  /** Makes these the endpoints of the source. Unchanged ones keep their connection. */
  replaceEndpoints(source: EndpointSource, endpoints: readonly PluginEndpoint[]): EndpointChanges;
  /** Registers what is in a folder of plugin sockets now; a missing folder is an empty one. */
  scanSockets(folder: string): Promise<EndpointChanges>;
  /** The next load asks the plugin for its version and capabilities again. */
  refresh(name: string): void;
}

interface Entry {
  source: EndpointSource;
  endpoint: PluginEndpoint;
  fingerprint: string;
  connection: Connection | undefined;
}

/** The waits of Go clients; a budget may end them earlier. */
const acquirePolicy: RetryPolicy = { maxAttempts: 5, baseMs: 10, factor: 5, maxMs: 1_250, jitter: 0.1 };

/** A pool without endpoints. */
export function createPluginPool(options: GrpcPluginPoolOptions): GrpcPluginPool {
  const entries = new Map<string, Entry>();
  /** Every connection that is not closed yet, the retired ones included. */
  const open = new Set<Connection>();
  let isClosed = false;

  function retire(entry: Entry): void {
    entry.connection?.retire();
    entry.connection = undefined;
  }

  async function connect(entry: Entry): Promise<Connection> {
    const { connection } = entry;
    // Seen again on each use: a restarted sidecar binds a new file at the same path.
    if (connection && (await identifySocketFile(entry.endpoint)) === connection.socketFile) return connection;
    const fresh = await Connection.open(entry.endpoint);
    if (entry.connection !== connection && entry.connection) {
      // Another load opened one in the meantime.
      fresh.retire();
      return entry.connection;
    }
    connection?.retire();
    entry.connection = fresh;
    open.add(fresh);
    void fresh.closed.then(() => open.delete(fresh));
    return fresh;
  }

  async function borrow(entry: Entry, signal: AbortSignal): Promise<Loan> {
    const connection = await connect(entry);
    const giveBack = connection.borrow();
    // Replaced, forgotten or closed meanwhile: the connection serves this caller and ends with it.
    if (isClosed || entries.get(entry.endpoint.name) !== entry) retire(entry);
    try {
      const plugin = await untilAborted(connection.plugin(), signal);
      await connection.probe({ signal });
      return { plugin, giveBack };
    } catch (error) {
      giveBack();
      // A new channel dials at once, where this one would sit out its backoff. Giving up says nothing about the channel.
      const broken = !signal.aborted && findPluginError(error)?.status !== undefined;
      if (broken && entry.connection === connection) retire(entry);
      throw error;
    }
  }

  /** The failure is a value, so that the loans of other plugins are not lost. */
  async function acquire(name: string, signal: AbortSignal, budgetMs: number): Promise<Loan | PluginError> {
    const entry = entries.get(name);
    if (!entry) return unknownPlugin(name, [...entries.keys()]);
    let last: PluginError | undefined;
    const attempt = async () => {
      try {
        return await borrow(entries.get(name) ?? entry, signal);
      } catch (error) {
        const known = findPluginError(error);
        if (known && !signal.aborted) last = known;
        throw error;
      }
    };
    try {
      const { clock, random } = options;
      const classify = () => ({ retryable: last?.retryable ?? false });
      return await retry(attempt, { policy: acquirePolicy, clock, random, signal, classify });
    } catch (error) {
      if (!signal.aborted) return last ?? outOfTime(name, "it could not be loaded", error);
      const late = (signal.reason as { name?: string } | undefined)?.name === "TimeoutError";
      const text = late ? `it could not be loaded within ${budgetMs} ms` : "loading it was given up";
      return outOfTime(name, last ? `${text}, last because of: ${last.message}` : text, last ?? error);
    }
  }

  function replaceEndpoints(source: EndpointSource, endpoints: readonly PluginEndpoint[]): EndpointChanges {
    const changes = {
      added: [] as string[],
      changed: [] as string[],
      removed: [] as string[],
      rejected: [] as string[],
    };
    const wanted = new Set(endpoints.map(({ name }) => name));
    for (const [name, entry] of entries) {
      if (entry.source !== source || wanted.has(name)) continue;
      entries.delete(name);
      retire(entry);
      changes.removed.push(name);
    }
    for (const endpoint of endpoints) {
      const { name } = endpoint;
      const before = entries.get(name);
      const fingerprint = endpointFingerprint(endpoint);
      if (before && before.source !== source) {
        changes.rejected.push(name);
        options.logger.warning("Plugin is registered already", { pluginName: name, by: before.source });
      } else if (before?.fingerprint !== fingerprint) {
        // A new entry, not a changed one: loads that run keep what they began with.
        entries.set(name, { source, endpoint, fingerprint, connection: undefined });
        if (before) retire(before);
        (before ? changes.changed : changes.added).push(name);
        options.logger.info("Registered plugin", { pluginName: name });
      }
    }
    return changes;
  }

  return {
    names: () => [...entries.keys()].sort(),
    replaceEndpoints,
    scanSockets: async (folder) => replaceEndpoints("sockets", await listSocketEndpoints(folder)),
    refresh: (name) => entries.get(name)?.connection?.forgetIdentity(),
    async load(names, { budgetMs = 5_000, signal } = {}) {
      const budget = AbortSignal.timeout(budgetMs);
      const ends = signal ? AbortSignal.any([signal, budget]) : budget;
      const sorted = [...new Set(names)].sort();
      const results = await Promise.all(sorted.map((name) => acquire(name, ends, budgetMs)));
      const loans = results.filter((result): result is Loan => !(result instanceof Error));
      const failed = results.find((result) => result instanceof Error);
      if (!failed) return createSession(loans);
      for (const { giveBack } of loans) giveBack();
      throw failed;
    },
    async close({ graceMs = 10_000 } = {}) {
      isClosed = true;
      for (const entry of entries.values()) retire(entry);
      entries.clear();
      const grace = new AbortController();
      const all = Promise.all([...open].map(({ closed }) => closed));
      await Promise.race([all, options.clock.sleep(graceMs, grace.signal).catch(() => undefined)]);
      grace.abort();
      for (const connection of [...open]) connection.kill();
    },
  };
}

/** A socket has the name of its plugin. */
async function listSocketEndpoints(folder: string): Promise<SocketEndpoint[]> {
  try {
    const files = await readdir(folder, { withFileTypes: true });
    const names = files.filter((file) => file.isSocket()).map(({ name }) => name);
    return names.sort().map((name) => ({ kind: "socket", name, path: join(folder, name) }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new Error(`the folder of plugin sockets, ${folder}, cannot be read; check PLUGIN_SOCKET_DIR`, {
      cause: error,
    });
  }
}

interface Loan {
  plugin: Plugin;
  giveBack: () => void;
}

function createSession(loans: readonly Loan[]): PluginSession {
  const plugins = loans.map(({ plugin }) => plugin);
  return {
    plugins,
    get: (name) => plugins.find((plugin) => plugin.name === name),
    release: () => {
      for (const { giveBack } of loans) giveBack();
    },
  };
}

function outOfTime(plugin: string, text: string, cause: unknown): PluginError {
  const remedy = "check its pod, Service and certificates";
  const fields = { plugin, operation: "connect", kind: "unavailable", cause } as const;
  return new PluginError(`plugin ${plugin}: ${text}; ${remedy}`, fields);
}

function unknownPlugin(name: string, known: readonly string[]): PluginError {
  return new PluginError(
    `plugin ${name} is not known (known: ${[...known].sort().join(", ") || "none"}); install it, or correct spec.plugins`,
    { plugin: name, operation: "connect", kind: "unknownPlugin" },
  );
}

/** Stops waiting when the signal fires; the promise itself goes on for its other users. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
