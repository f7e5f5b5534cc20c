import type { Agent as UndiciAgent } from "undici";
import request from "undici/lib/api/api-request.js";
import Agent from "undici/lib/dispatcher/agent.js";
import { ports } from "../api/constants.ts";
import type { Pod } from "../api/generated/kubernetes.ts";
import type { PostgresStatus } from "../api/pg-status.ts";
import { parseVolumeFailure } from "../api/volume-failure.ts";
import type { PolledInstance } from "../plan/cluster/observed.ts";
import { isReadyPod, postgresContainer } from "../plan/cluster/pods.ts";
import type { OperatorIdentity } from "./operator-identity.ts";

/** One request to the operator's part of an instance's interface. */
export interface InstanceRequest {
  method: "GET" | "POST";
  path: string;
  /** Bound for the whole call. @default - as for a status call */
  timeoutMs?: number;
}

/** Asks instances for their state. */
export interface StatusClient {
  /**
   * Never rejects: a failure is the instance's silence. `serverCa` is the PEM that its certificate must chain to; `limitMs` bounds all
   * attempts together.
   */
  poll(pod: Pod, serverCa: string | undefined, signal: AbortSignal, limitMs?: number): Promise<PolledInstance>;
  /** Gives the body of the answer; rejects unless it is a success. */
  call(pod: Pod, serverCa: string | undefined, asked: InstanceRequest, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

export interface StatusClientOptions {
  identity: OperatorIdentity;
  /** @default 2000 */
  connectTimeoutMs?: number;
  /** Bound for one call, connecting included. @default 5000 */
  timeoutMs?: number;
}

/** An instance answered, and not with a success. */
class RefusedCallError extends Error {
  override readonly name = "RefusedCallError";
  readonly body: string;

  constructor(message: string, body: string) {
    super(`${message}: ${body.slice(0, 200)}`);
    this.body = body;
  }
}

/** A client that keeps one pool of connections per server authority, so that a renewed one is used at once. */
export function createStatusClient(options: StatusClientOptions): StatusClient {
  const agents = new Map<string, UndiciAgent>();
  const connectTimeoutMs = options.connectTimeoutMs ?? 2_000;

  function agentFor(serverCa: string): UndiciAgent {
    const known = agents.get(serverCa);
    if (known) return known;
    const agent = new Agent({
      connections: 4,
      keepAliveTimeout: 10_000,
      connect: {
        ca: serverCa,
        cert: options.identity.certificate,
        key: options.identity.privateKey,
        minVersion: "TLSv1.3",
        timeout: connectTimeoutMs,
        // Instances are reached by address, their certificate names Services: the chain alone is checked.
        checkServerIdentity: () => undefined,
      },
    });
    agents.set(serverCa, agent);
    return agent;
  }

  const plain = new Agent({ connections: 4, keepAliveTimeout: 10_000, connect: { timeout: connectTimeoutMs } });

  async function call(
    pod: Pod,
    serverCa: string | undefined,
    asked: InstanceRequest,
    signal: AbortSignal,
  ): Promise<string> {
    const ip = pod.status?.podIP;
    if (!ip) throw new Error("the pod has no address yet");
    const isTls = usesTls(pod);
    if (isTls && !serverCa) throw new Error("the server's certificate authority is not known");
    const dispatcher = isTls && serverCa ? agentFor(serverCa) : plain;
    const { method, timeoutMs = options.timeoutMs ?? 5_000 } = asked;
    const url = instanceUrl(isTls ? "https" : "http", ip, asked.path);
    const bound = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const { origin, pathname: path } = new URL(url);
    // The client's own bounds are for a status call; the signal is the bound of this one.
    const limits = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const answer = await request.call(dispatcher, { origin, path, method, signal: bound, ...limits });
    const body = await answer.body.text();
    if (answer.statusCode !== 200) throw new RefusedCallError(`${method} ${url} answered ${answer.statusCode}`, body);
    return body;
  }

  async function ask(pod: Pod, serverCa: string | undefined, signal: AbortSignal): Promise<PostgresStatus> {
    const path = "/pg/status";
    return parseStatus(await call(pod, serverCa, { method: "GET", path }, signal), `${pod.status?.podIP}${path}`);
  }

  return {
    async poll(pod, serverCa, signal, limitMs = options.timeoutMs ?? 5_000) {
      const bound = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
      const base = { name: pod.metadata.name ?? "", pod, ready: isReadyPod(pod) };
      try {
        return { kind: "answered", ...base, status: await askTwice(() => ask(pod, serverCa, bound)) };
      } catch (error) {
        const failure = error instanceof RefusedCallError ? parseVolumeFailure(error.body) : undefined;
        if (failure) return { kind: "silent", ...base, reason: failure.error.message, volumeFailure: failure };
        return { kind: "silent", ...base, reason: describe(error) };
      }
    },
    call,
    async close() {
      await Promise.all([plain, ...agents.values()].map((it) => it.destroy()));
      agents.clear();
    },
  };
}

/** URL of an instance's web server; every one is made here, so that IPv6 addresses get their brackets. */
export function instanceUrl(scheme: "http" | "https", ip: string, path: string): string {
  const host = ip.includes(":") ? `[${ip.replace(/%.*$/, "")}]` : ip;
  return `${scheme}://${host}:${ports.status}${path}`;
}

/** Whether the instance manager of a pod was started with TLS on its status port. */
export function usesTls(pod: Pod): boolean {
  const container = pod.spec?.containers.find((it) => it.name === postgresContainer);
  return [...(container?.command ?? []), ...(container?.args ?? [])].includes("--status-port-tls");
}

function parseStatus(body: string, url: string): PostgresStatus {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new Error(`GET ${url} did not answer JSON`, { cause: error });
  }
  if (typeof value !== "object" || value === null || typeof (value as PostgresStatus).isPrimary !== "boolean") {
    throw new Error(`GET ${url} answered something that is no instance status`);
  }
  return value as PostgresStatus;
}

/** A kept connection that the other side has closed meanwhile fails at once and is worth one more try. */
async function askTwice<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "UND_ERR_SOCKET" && code !== "ECONNRESET" && code !== "EPIPE") throw error;
    return ask();
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error.message || error.name}${cause}`;
}
