// What plugins say to specs that came past the webhooks: where these are off, the pass asks in their place.
import { createHash } from "node:crypto";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { createMergePatch } from "../../build/merge-patch.ts";
import type { Plugin } from "../../ports/plugin.ts";
import { mutateCluster, validateClusterCreate } from "../../rpc/calls/operator.ts";

export type SpecVerdict =
  | { kind: "accepted" }
  /** `patch`: merge patch of the Cluster that makes it what the plugins want. */
  | { kind: "changed"; patch: Record<string, unknown> }
  | { kind: "refused"; errors: readonly string[] };

/** Remembers what was accepted, so that a spec is judged once by each version of its plugins. */
export class SpecVerdicts {
  /** By the UID of the Cluster: fingerprint of the spec and the plugins that accepted it. */
  readonly #accepted = new Map<string, string>();
  /** By the UID of the Cluster: fingerprint of the spec that plugins made last. A plugin that is never content is not asked again. */
  readonly #made = new Map<string, string>();

  async judge(plugins: readonly Plugin[], cluster: Cluster, signal: AbortSignal): Promise<SpecVerdict> {
    const uid = cluster.metadata.uid ?? "";
    const asked = plugins.filter(({ capabilities }) => capabilities.operator.some((it) => reviewing.has(it)));
    if (asked.length === 0) return { kind: "accepted" };
    const versions = asked.map(({ name, metadata }) => [name, metadata.version]);
    const key = fingerprint([cluster.spec, versions]);
    if (this.#accepted.get(uid) === key) return { kind: "accepted" };
    if (this.#made.get(uid) !== fingerprint(cluster.spec)) {
      const mutated = await mutateCluster(asked, cluster, { signal });
      const patch = differenceOf(cluster, mutated);
      if (Object.keys(patch).length > 0) {
        this.#made.set(uid, fingerprint(mutated.spec));
        return { kind: "changed", patch };
      }
    }
    if (cluster.metadata.annotations?.[annotations.validation] !== "disabled") {
      const errors = await validateClusterCreate(asked, cluster, { signal });
      if (errors.length > 0) {
        return { kind: "refused", errors: errors.map(({ path, message }) => `${path.join(".")}: ${message}`) };
      }
    }
    this.#accepted.set(uid, key);
    return { kind: "accepted" };
  }

  /** The Cluster with this UID is gone. */
  forget(uid: string): void {
    this.#accepted.delete(uid);
    this.#made.delete(uid);
  }
}

const reviewing: ReadonlySet<string> = new Set(["TYPE_MUTATE_CLUSTER", "TYPE_VALIDATE_CLUSTER_CREATE"]);

/** Plugins have a say in the spec, the labels and the annotations; the rest of the object is not theirs. */
function differenceOf(before: Cluster, after: Cluster): Record<string, unknown> {
  const own = ({ metadata, spec }: Cluster) => ({
    metadata: { labels: { ...metadata.labels }, annotations: { ...metadata.annotations } },
    spec: { ...spec },
  });
  return createMergePatch(own(before), own(after));
}

/** The API server gives the keys in an order of its own. */
function fingerprint(value: unknown): string {
  const sorted = (_key: string, it: unknown) =>
    typeof it === "object" && it !== null && !Array.isArray(it)
      ? Object.fromEntries(Object.entries(it).sort(([a], [b]) => (a < b ? -1 : 1)))
      : it;
  return createHash("sha256").update(JSON.stringify(value, sorted)).digest("hex");
}
