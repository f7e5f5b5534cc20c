// What plugins have to say when a Cluster is created or changed (reference: CNPG-I §3.2; the original never asks them).
import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { sameJson } from "../../build/same-json.ts";
import type { Logger } from "../../ports/logger.ts";
import { findPluginError, type PluginSession, type PluginValidationError } from "../../ports/plugin.ts";
import { mutateCluster, validateClusterChange, validateClusterCreate } from "../../rpc/calls/operator.ts";
import { type FieldIssue, formatRefusal, invalid } from "../../schema/admission/field-issue.ts";
import type { ReviewedObject, ReviewOutcome } from "../admission-review.ts";
import type { PluginDirectory } from "./plugin-directory.ts";

/** Bound for all that a review asks of plugins: API servers wait ten seconds for a webhook. */
const reviewLimitMs = 6_000;
const loadLimitMs = 3_000;

export interface PluginReview {
  directory: Pick<PluginDirectory, "load">;
  logger: Logger;
}

/** Lets the plugins that the Cluster enables change it; one that can't be asked changes nothing. */
export async function mutateByPlugins(
  options: PluginReview,
  review: ReviewedObject,
  outcome: ReviewOutcome,
): Promise<ReviewOutcome> {
  if (outcome.kind === "denied") return outcome;
  const cluster = (outcome.kind === "changed" ? outcome.object : review.object) as Cluster;
  if (!isNews(review)) return outcome;
  const asked = await ask(options, cluster, ({ plugins }, signal) => mutateCluster(plugins, cluster, { signal }));
  return "answer" in asked ? { kind: "changed", object: asked.answer } : outcome;
}

/**
 * Refuses what the plugins refuse. One that can't be asked refuses nothing: it may be installed after the Cluster, and a webhook that
 * waits for it would keep everybody from mending it. Whoever applies the Cluster is told.
 */
export async function validateByPlugins(
  options: PluginReview,
  review: ReviewedObject,
  outcome: ReviewOutcome,
): Promise<ReviewOutcome> {
  const cluster = review.object as Cluster;
  const previous = review.operation === "UPDATE" && review.oldObject ? (review.oldObject as Cluster) : undefined;
  const isOff = cluster.metadata.annotations?.[annotations.validation] === "disabled";
  if (outcome.kind !== "allowed" || isOff || !isNews(review)) return outcome;
  const asked = await ask(options, cluster, ({ plugins }, signal) =>
    previous
      ? validateClusterChange(plugins, { before: previous, after: cluster }, { signal })
      : validateClusterCreate(plugins, cluster, { signal }),
  );
  const warnings = outcome.warnings ?? [];
  if ("failure" in asked) {
    const warning = `The plugins of this Cluster were not asked whether they accept it: ${asked.failure}`;
    return { kind: "allowed", warnings: [...warnings, warning] };
  }
  if (asked.answer.length === 0) return outcome;
  const kind = `Cluster.${previous ? "cluster.cnpg.io" : "postgresql.cnpg.io"}`;
  const message = formatRefusal(kind, cluster.metadata.name ?? "", asked.answer.map(issueOf));
  return { kind: "denied", message, code: 422, reason: "Invalid", warnings };
}

/** Whether the spec is new: everything else that is written to a Cluster is none of the plugins' business here. */
function isNews({ object, oldObject, operation }: ReviewedObject): boolean {
  const cluster = object as Cluster;
  if (cluster.metadata.deletionTimestamp || enabledPlugins(cluster).length === 0) return false;
  return operation !== "UPDATE" || !oldObject || !sameJson((oldObject as Cluster).spec, cluster.spec);
}

async function ask<T>(
  { directory, logger }: PluginReview,
  cluster: Cluster,
  work: (session: PluginSession, signal: AbortSignal) => Promise<T>,
): Promise<{ answer: T } | { failure: string }> {
  const signal = AbortSignal.timeout(reviewLimitMs);
  try {
    const session = await directory.load(enabledPlugins(cluster), { signal, budgetMs: loadLimitMs });
    try {
      return { answer: await work(session, signal) };
    } finally {
      session.release();
    }
  } catch (error) {
    const failure = findPluginError(error);
    if (!failure && !signal.aborted) throw error;
    const text = failure?.message ?? `no answer within ${reviewLimitMs / 1_000} s`;
    logger.warning("Plugins could not be asked about a Cluster", { cluster: cluster.metadata.name, reason: text });
    return { failure: text };
  }
}

function issueOf({ path, value, message }: PluginValidationError): FieldIssue {
  return invalid(path.join("."), value, message);
}
