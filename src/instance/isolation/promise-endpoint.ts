import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { DetailedPeerCertificate, TLSSocket } from "node:tls";
import { roles } from "../../api/constants.ts";
import { parseCertificates } from "../../pki/certificate.ts";
import { checkChain } from "../../pki/chain.ts";
import { type PromiseAnswer, type PromiseRequest, parsePromiseRequest } from "../../plan/instance/promise.ts";
import { parseReleaseNotice, type ReleaseNotice } from "../../plan/instance/release-notice.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type HttpAnswer, jsonAnswer, readBody, textAnswer } from "../web/http-answer.ts";

/** Longest chain that is looked at. */
const longestChain = 8;

/** Why a client is no instance of this cluster; `null` when its certificate is that of the replication user. */
export function checkPeer(
  chain: readonly X509Certificate[],
  clientAuthority: string | undefined,
  now: number,
): string | null {
  const [leaf, ...intermediates] = chain;
  if (!leaf) return "client certificate required";
  if (!clientAuthority) return "the client authority is not known yet";
  if (!leaf.subject.split("\n").includes(`CN=${roles.replication}`)) return "the certificate is not an instance's";
  const problem = checkChain([leaf, ...intermediates], parseCertificates(clientAuthority, "client CA"), "client", now);
  return problem && `the certificate ${problem}`;
}

function chainOf(request: IncomingMessage): X509Certificate[] {
  const socket = request.socket as Partial<TLSSocket>;
  const chain: X509Certificate[] = [];
  const seen = new Set<string>();
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate?.(true);
  while (next?.raw && chain.length < longestChain && !seen.has(next.fingerprint256)) {
    seen.add(next.fingerprint256);
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}

/** The answer to whoever is no instance of this cluster. */
async function turnAway(context: InstanceContext, request: IncomingMessage): Promise<HttpAnswer | undefined> {
  if (request.method !== "POST") return textAnswer(405, "POST only");
  const chain = chainOf(request);
  const authority = await context.files.read(`${context.paths.certificates}/client-ca.crt`);
  const refusal = checkPeer(chain, authority, context.clock.now());
  return refusal === null ? undefined : textAnswer(chain.length === 0 ? 401 : 403, refusal);
}

/** Takes a holder's word that its PostgreSQL is down. */
export async function takeRelease(
  deps: { context: InstanceContext; note: (notice: ReleaseNotice) => void },
  request: IncomingMessage,
): Promise<HttpAnswer> {
  const refusal = await turnAway(deps.context, request);
  if (refusal) return refusal;
  const notice = parseReleaseNotice(await readBody(request));
  if (!notice) return textAnswer(400, "the body is no notice of a release");
  deps.note(notice);
  return textAnswer(200, "OK");
}

/** Answers a holder that asks for a promise. Anything but an instance of this cluster is turned away. */
export async function answerPromise(
  deps: { context: InstanceContext; promise: (request: PromiseRequest) => PromiseAnswer },
  request: IncomingMessage,
): Promise<HttpAnswer> {
  const { context, promise } = deps;
  const refusal = await turnAway(context, request);
  if (refusal) return refusal;
  const question = parsePromiseRequest(await readBody(request));
  if (!question) return textAnswer(400, "the body is no request for a promise");
  const answer = promise(question);
  context.logger.debug("Answered a request for a promise", { holder: question.holder, granted: answer.granted });
  return jsonAnswer(200, answer);
}
