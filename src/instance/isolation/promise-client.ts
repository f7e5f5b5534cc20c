import { request as httpsRequest } from "node:https";
import { ports } from "../../api/constants.ts";
import type { PromiseRequest } from "../../plan/instance/promise.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Path of the promises on the remote server; managers without it answer 404 and promise nothing. */
export const promisePath = "/cnpg-ts/promise";
/** Path of what a holder tells of its end. */
export const releasePath = "/cnpg-ts/release";
/** Longest answer that is read, in bytes. */
const longestAnswer = 262_144;

export interface PeerAddress {
  host: string;
  port: number;
}

/**
 * Where an instance can be asked, as the Cluster told last, or before that was read the runtime before this one;
 * `CNPG_TS_PEER_ADDRESSES` (`name=host:port,…`) goes before both.
 */
export function addressOf(context: InstanceContext, name: string): PeerAddress | undefined {
  const given = context.settings.environment["CNPG_TS_PEER_ADDRESSES"] ?? "";
  for (const entry of given.split(",")) {
    const [, peer, host, port] = /^(.+)=(.+):(\d+)$/.exec(entry) ?? [];
    if (peer === name && host) return { host, port: Number(port) };
  }
  const ip = context.state.cluster?.status?.instancesReportedState?.[name]?.ip;
  return ip ? { host: ip, port: ports.status } : context.state.rememberedPeers[name];
}

/** Asks one voter for its promise over mutual TLS; rejects when there is no answer of one. */
export async function askForPromise(
  context: InstanceContext,
  question: PromiseRequest,
  signal: AbortSignal,
): Promise<unknown> {
  return JSON.parse(await tellPeer(context, { name: question.voter, path: promisePath }, question, signal)) as unknown;
}

/** Sends a question or a message to one instance over mutual TLS; resolves with its answer. */
export async function tellPeer(
  context: InstanceContext,
  to: { name: string; path: string },
  message: unknown,
  signal: AbortSignal,
): Promise<string> {
  return send(context, to, JSON.stringify(message), signal);
}

/** Reads from one instance over the same channel. */
export function readPeer(
  context: InstanceContext,
  from: { name: string; path: string },
  signal: AbortSignal,
): Promise<string> {
  return send(context, from, undefined, signal);
}

async function send(
  context: InstanceContext,
  to: { name: string; path: string },
  body: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const address = addressOf(context, to.name);
  if (!address) throw new Error(`the address of ${to.name} is not known`);
  const { files, paths } = context;
  const read = (name: string) => files.read(`${paths.certificates}/${name}`);
  const [ca, cert, key] = await Promise.all([
    read("server-ca.crt"),
    read("streaming_replica.crt"),
    read("streaming_replica.key"),
  ]);
  if (!ca || !cert || !key) throw new Error("the certificates for a question to a peer are missing");
  return call({ ...address, path: to.path }, { ca, cert, key }, body, signal);
}

function call(
  { host, port, path }: PeerAddress & { path: string },
  tls: { ca: string; cert: string; key: string },
  body: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const content =
    body === undefined
      ? { method: "GET" }
      : {
          method: "POST",
          headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
        };
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      {
        host,
        port,
        path,
        ...content,
        minVersion: "TLSv1.3",
        agent: false,
        ...tls,
        // Instances are reached by address, their certificate names Services: the chain alone is checked.
        checkServerIdentity: () => undefined,
        signal,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
          if (text.length > longestAnswer) request.destroy(new Error(`${host} answers too much`));
        });
        response.on("error", reject);
        response.on("end", () =>
          response.statusCode === 200 ? resolve(text) : reject(new Error(`${host} answered ${response.statusCode}`)),
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}
