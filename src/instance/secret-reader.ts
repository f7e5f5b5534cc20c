import type { Cluster } from "../api/generated/cluster.ts";
import type { Secret } from "../api/generated/kubernetes.ts";
import { resources } from "../kube/resources.ts";
import type { Clock } from "../ports/clock.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";

/** Outcome of reading a Secret; that the API server can't be asked is never "missing". */
export type SecretRead =
  | { kind: "found"; secret: Secret }
  | { kind: "missing" }
  | { kind: "forbidden" }
  | { kind: "unavailable"; reason: string };

/** Secrets are read anew after this time even when the Cluster shows no change. */
const longestAgeMs = 5 * 60_000;

/** Text of one key of a Secret; `undefined` when the key is absent. */
export function secretText(secret: Secret, key: string): string | undefined {
  const data = secret.data?.[key];
  return data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8");
}

/** Reads Secrets live, but only again when the Cluster's status tells that one of them changed. */
export class SecretReader {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #namespace: string;
  readonly #known = new Map<string, { read: SecretRead; at: number }>();
  #versions = "";

  constructor(kube: KubeApi, clock: Clock, namespace: string) {
    this.#kube = kube;
    this.#clock = clock;
    this.#namespace = namespace;
  }

  /** Tells the state of the Cluster; a change in its secret versions makes every Secret be read again. */
  observe(cluster: Cluster): void {
    const versions = JSON.stringify([
      cluster.status?.secretsResourceVersion ?? {},
      cluster.status?.certificates ?? {},
      cluster.metadata.generation ?? 0,
    ]);
    if (versions === this.#versions) return;
    this.#versions = versions;
    this.#known.clear();
  }

  /** Makes one Secret be read anew. */
  forget(name: string): void {
    this.#known.delete(name);
  }

  async read(name: string, signal?: AbortSignal): Promise<SecretRead> {
    const known = this.#known.get(name);
    const now = this.#clock.monotonicMs();
    if (known?.read.kind === "found" && now - known.at < longestAgeMs) return known.read;
    const read = await this.#fetch(name, signal);
    // What was found stays good while the API server is away.
    if (read.kind === "unavailable" && known) return known.read;
    this.#known.set(name, { read, at: now });
    return read;
  }

  async #fetch(name: string, signal?: AbortSignal): Promise<SecretRead> {
    try {
      const key = { namespace: this.#namespace, name };
      const secret = await this.#kube.get(resources.secrets, key, { timeoutMs: 5_000, ...(signal ? { signal } : {}) });
      return { kind: "found", secret };
    } catch (error) {
      if (isKubeError(error, "notFound")) return { kind: "missing" };
      if (isKubeError(error, "forbidden")) return { kind: "forbidden" };
      return { kind: "unavailable", reason: error instanceof Error ? error.message : String(error) };
    }
  }
}
