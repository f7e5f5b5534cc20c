import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "../../src/api/generated/cluster.ts";
import type { Lease, PersistentVolumeClaim, Pod, PodSpec } from "../../src/api/generated/kubernetes.ts";
import { parseNodeSerial } from "../../src/api/markers.ts";
import type { PostgresStatus } from "../../src/api/pg-status.ts";
import type { ObservedCertificate } from "../../src/build/certificates.ts";
import { buildInstancePod } from "../../src/build/instance-pod.ts";
import { createAdmissionGuard } from "../../src/operator/admission-guard.ts";
import { actionName, type ClusterAction } from "../../src/plan/cluster/actions.ts";
import { planCluster } from "../../src/plan/cluster/plan-cluster.ts";
import { isReadyPod } from "../../src/plan/cluster/pods.ts";
import type { KubeObject } from "../../src/ports/kube-api.ts";
import { anObservation } from "../unit/plan/cluster/fixtures.ts";
import { type Observed, observedContext, ofCluster, withSidecar } from "./observed.ts";

/** Steps that a take-over is meant to have: what our instances may do more than the original's. */
const intended = /^(updateRole|event) [^:]*: (role \S+ is out of date|Updating Cluster Role)$/;

/**
 * What our operator would do to a healthy cluster that the original runs, beside telling of it and what is intended; empty when it
 * leaves it alone.
 */
export function planTakeOver(folder: string, cluster: Cluster, observed: Observed): readonly string[] {
  const guard = createAdmissionGuard(observedContext).check(cluster);
  if (guard.kind !== "admitted") return [`the Cluster is ${guard.kind} by the operator's own look at it`];
  const objects = observed.objects.filter((it) => ofCluster(it, cluster));
  // Of some only what surrounds the instances was kept.
  if (!objects.some(({ kind }) => kind === "Pod")) return [];
  const of = <T extends KubeObject>(kind: string) => objects.filter((it) => it.kind === kind) as T[];
  const byName = <T extends KubeObject>(kind: string) =>
    new Map(of<T>(kind).map((it) => [it.metadata.name ?? "", it] as const));
  const pods = of<Pod>("Pod");
  const evaluated = new Map<string, PodSpec>();
  for (const pod of pods) {
    const built = buildInstancePod(cluster, parseNodeSerial(pod) ?? 0, observedContext);
    const { spec } = withSidecar(built, cluster, observed);
    if (spec) evaluated.set(pod.metadata.name ?? "", spec);
  }
  const at = new Date(pods[0]?.metadata.creationTimestamp ?? 0);
  const seen = anObservation({
    pods,
    volumes: of<PersistentVolumeClaim>("PersistentVolumeClaim"),
    instances: pods.map((pod) => ({
      kind: "answered",
      name: pod.metadata.name ?? "",
      pod,
      ready: isReadyPod(pod),
      status: statusOf(folder, pod, cluster),
    })),
    secrets: new Map(secretNames(cluster).map((name) => [name, aSecret(cluster, name)])),
    certificates: certificatesOf(cluster, at),
    services: byName("Service"),
    serviceAccounts: byName("ServiceAccount"),
    roles: byName("Role"),
    roleBindings: byName("RoleBinding"),
    budgets: byName("PodDisruptionBudget"),
    lease: of<Lease>("Lease")[0],
    plugins: { kind: "loaded", statuses: cluster.status?.pluginStatus ?? [], pre: { kind: "continue" }, evaluated },
  });
  const operator = { ...seen.operator, context: observedContext };
  const plan = planCluster(cluster, { ...seen, operator }, at);
  // A pass that ended before it looked at everything has proved nothing.
  const unfinished = plan.settled ? [] : [`a pass that ends early: ${plan.because}`];
  return [...unfinished, ...plan.actions.flatMap(describe).filter((it) => !intended.test(it))];
}

/** What the instance's status port answered; one file for each role. */
function statusOf(folder: string, pod: Pod, cluster: Cluster): PostgresStatus {
  const role = pod.metadata.name === cluster.status?.currentPrimary ? "primary" : "standby";
  return JSON.parse(readFileSync(join(folder, "observed", `pg-status-${role}.json`), "utf8")) as PostgresStatus;
}

const secretNames = ({ metadata: { name } }: Cluster) =>
  ["ca", "server", "replication", "app", "superuser"].map((it) => `${name}-${it}`);

function aSecret(cluster: Cluster, name: string) {
  const { namespace = "" } = cluster.metadata;
  return { apiVersion: "v1" as const, kind: "Secret" as const, metadata: { name, namespace, uid: name } };
}

/** Their content is not among what was observed: they are what the status says. */
function certificatesOf({ metadata: { name }, status }: Cluster, at: Date): Map<string, ObservedCertificate> {
  const valid = {
    kind: "present",
    notBefore: at.getTime(),
    notAfter: at.getTime() + 7_776_000_000,
    hasKey: true,
  } as const;
  const dnsNames = status?.certificates?.serverAltDNSNames ?? [];
  return new Map<string, ObservedCertificate>([
    [`${name}-ca`, { ...valid, dnsNames: [] }],
    [`${name}-server`, { ...valid, dnsNames }],
    [`${name}-replication`, { ...valid, dnsNames: [] }],
  ]);
}

/** The status is the operator's own report. */
function describe(action: ClusterAction): string[] {
  if (action.kind === "patchStatus") return [];
  const subject = "target" in action ? action.target.name : "object" in action ? action.object.metadata.name : "";
  return [`${actionName(action)} ${subject}: ${action.reason}`];
}
