// Who may read the plugin's metrics: whom the API server knows by a token, and allows the path.
import { createHash } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { KubeApi, KubeObject, ResourceType } from "../../ports/kube-api.ts";

/** What the API server says of the bearer of a token. */
export type AccessVerdict = { kind: "allowed" } | { kind: "unknown" } | { kind: "forbidden"; user: string };

/** Judges one request by its `Authorization` header, method and path; rejects when the API server cannot be asked. */
export type MetricsAccess = (
  authorization: string | undefined,
  request: { method: string; path: string },
) => Promise<AccessVerdict>;

interface TokenReview extends KubeObject {
  spec: { token: string };
  status?: { authenticated?: boolean; user?: ReviewedUser };
}

interface ReviewedUser {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

interface SubjectAccessReview extends KubeObject {
  spec: {
    user?: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    nonResourceAttributes: { path: string; verb: string };
  };
  status?: { allowed?: boolean };
}

const tokenReviews: ResourceType<TokenReview> = {
  group: "authentication.k8s.io",
  version: "v1",
  kind: "TokenReview",
  plural: "tokenreviews",
  namespaced: false,
};

const accessReviews: ResourceType<SubjectAccessReview> = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

/** How long an answer counts, in milliseconds: those who scrape come back with the same token, and may lose their right. */
const grantedMs = 60_000;
const refusedMs = 10_000;
const remembered = 256;

/** Asks the API server, as long as it has not just answered the same question. */
export function createMetricsAccess(api: Pick<KubeApi, "create">, clock: Clock): MetricsAccess {
  const answers = new Map<string, { verdict: AccessVerdict; untilMs: number }>();
  return async (authorization, request) => {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return { kind: "unknown" };
    const verb = request.method.toLowerCase();
    const key = [createHash("sha256").update(token).digest("hex"), verb, request.path].join(" ");
    const before = answers.get(key);
    if (before && before.untilMs > clock.monotonicMs()) return before.verdict;
    const verdict = await judge(api, token, { path: request.path, verb });
    answers.delete(key);
    const [oldest] = answers.keys();
    if (answers.size >= remembered && oldest !== undefined) answers.delete(oldest);
    answers.set(key, { verdict, untilMs: clock.monotonicMs() + (verdict.kind === "allowed" ? grantedMs : refusedMs) });
    return verdict;
  };
}

async function judge(
  api: Pick<KubeApi, "create">,
  token: string,
  nonResourceAttributes: { path: string; verb: string },
): Promise<AccessVerdict> {
  const { status } = await api.create(tokenReviews, { metadata: {}, spec: { token } });
  if (!status?.authenticated) return { kind: "unknown" };
  const { username = "", uid, groups, extra } = status.user ?? {};
  const user = { user: username, ...(uid ? { uid } : {}), ...(groups ? { groups } : {}), ...(extra ? { extra } : {}) };
  const review = await api.create(accessReviews, { metadata: {}, spec: { ...user, nonResourceAttributes } });
  return review.status?.allowed ? { kind: "allowed" } : { kind: "forbidden", user: username };
}
