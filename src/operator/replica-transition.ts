import { clusterNamespace, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Pod } from "../api/generated/kubernetes.ts";
import { ownsObject } from "../build/metadata.ts";
import { secretText } from "../pki/inspect.ts";
import { type ObservedControlData, wantsControlData } from "../plan/cluster/replica-cluster.ts";
import type { StatusClient } from "./status-client.ts";
import type { OperatorStores } from "./stores.ts";

/** How long the archiving of one segment may take, in milliseconds: the store may be slow, and nobody waits for it but a person. */
const archiveLimitMs = 120_000;

/** What a demotion needs from the primary that has been stopped (reference: cluster controller §6.8). */
export interface DemotedPrimary {
  /** Its control data when the next step needs them; `undefined` else. */
  observe(cluster: Cluster, signal: AbortSignal): Promise<ObservedControlData | undefined>;
  /** Has it archive the segment in which it stopped, and makes sure that it was the one of this name. */
  archivePartialWal(cluster: Cluster, instance: string, wal: string, signal: AbortSignal): Promise<void>;
}

/** Talks to the demoted primary by the client that the status calls use. */
export function createDemotedPrimary(options: {
  stores: Pick<OperatorStores, "pods" | "secrets">;
  client: Pick<StatusClient, "call">;
}): DemotedPrimary {
  const { stores, client } = options;

  function find(cluster: Cluster, instance: string): { pod: Pod; serverCa: string | undefined } {
    const namespace = clusterNamespace(cluster);
    const pod = stores.pods.get({ namespace, name: instance });
    if (!pod || !ownsObject(cluster, pod)) throw new Error(`pod ${namespace}/${instance} does not exist`);
    const secret = stores.secrets.get({ namespace, name: secretNames(cluster).serverCa });
    return { pod, serverCa: secret ? secretText(secret, "ca.crt") : undefined };
  }

  return {
    async observe(cluster, signal) {
      const instance = wantsControlData(cluster);
      if (instance === undefined) return undefined;
      try {
        const { pod, serverCa } = find(cluster, instance);
        const body = await client.call(pod, serverCa, { method: "GET", path: "/pg/controldata" }, signal);
        return { kind: "read", text: readData(body, "/pg/controldata") };
      } catch (error) {
        signal.throwIfAborted();
        return { kind: "unknown", reason: error instanceof Error ? error.message : String(error) };
      }
    },

    async archivePartialWal(cluster, instance, wal, signal) {
      const path = "/pg/archive/partial";
      const { pod, serverCa } = find(cluster, instance);
      const body = await client.call(pod, serverCa, { method: "POST", path, timeoutMs: archiveLimitMs }, signal);
      const archived = readData(body, path);
      if (archived === wal) return;
      throw new Error(`${instance} archived ${archived} as its last segment, but stopped in ${wal}`);
    },
  };
}

function readData(body: string, path: string): string {
  const { data } = JSON.parse(body) as { data?: unknown };
  if (typeof data !== "string") throw new Error(`${path} did not answer with text in "data"`);
  return data;
}
