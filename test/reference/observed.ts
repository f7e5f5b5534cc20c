import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Cluster } from "../../src/api/generated/cluster.ts";
import type { Pod, PodSpec } from "../../src/api/generated/kubernetes.ts";
import type { ObjectStore } from "../../src/api/generated/objectstore.ts";
import { annotations, labels } from "../../src/api/labels.ts";
import { parseNodeSerial } from "../../src/api/markers.ts";
import { type BuildContext, defaultBuildContext } from "../../src/build/context.ts";
import { desiredDisruptionBudgets } from "../../src/build/disruption-budgets.ts";
import { buildInstancePod } from "../../src/build/instance-pod.ts";
import { buildFullRecoveryJob, buildInitdbJob, buildJoinJob } from "../../src/build/jobs.ts";
import { buildLease } from "../../src/build/lease.ts";
import { comparePodSpecs } from "../../src/build/pod-spec-diff.ts";
import { buildPvcs } from "../../src/build/pvcs.ts";
import { buildRole, buildRoleBinding } from "../../src/build/role.ts";
import { buildServiceAccount } from "../../src/build/service-account.ts";
import { desiredServices } from "../../src/build/services.ts";
import { buildAccessBinding, buildAccessRole } from "../../src/plugin/barman-cloud/access-role.ts";
import { readClusterStores } from "../../src/plugin/barman-cloud/cluster-stores.ts";
import { injectSidecar } from "../../src/plugin/barman-cloud/inject-sidecar.ts";
import type { KubeObject } from "../../src/ports/kube-api.ts";
import { compareExactly, compareLive } from "./live-object.ts";

/** Everything that the original was seen to make, read from the folder `observed` of the reference. */
export interface Observed {
  readonly clusters: readonly Cluster[];
  readonly stores: readonly ObjectStore[];
  readonly objects: readonly KubeObject[];
}

/** How one object that the original made compares with ours. */
export interface ObjectComparison {
  readonly name: string;
  readonly differences: readonly string[];
}

/** Where ours is another one on purpose, by kind and path. */
const deliberate: Readonly<Record<string, RegExp>> = {
  // An instance that is ended looks at its own pod.
  Role: /^\.rules\.18: only ours has it$/,
  // Jobs that clone instances keep apart, so that their volumes do.
  Job: /\.podAntiAffinity\.preferredDuringSchedulingIgnoredDuringExecution\.1: only ours has it$/,
};

const files = ["pods", "pvc", "svc", "pdb", "sa", "role", "rolebinding", "lease"];
const jobFiles = ["job-initdb", "job-join", "job-full-recovery"];

/** Reads what was observed; undefined where the reference has no such folder. */
export function readObserved(folder: string): Observed | undefined {
  const root = join(folder, "observed");
  if (!existsSync(root)) return undefined;
  const read = (name: string) =>
    parseAllDocuments(readFileSync(join(root, `${name}.yaml`), "utf8")).map((it) => it.toJS() as KubeObject);
  return {
    clusters: read("cluster") as Cluster[],
    stores: read("objectstore") as ObjectStore[],
    objects: [...files, ...jobFiles].flatMap(read),
  };
}

/** Compares what we make for the observed clusters with what the original made, as it stood on its API server. */
export function compareObserved(observed: Observed): readonly ObjectComparison[] {
  return observed.clusters.flatMap((cluster) => {
    const found = observed.objects.filter((it) => ofCluster(it, cluster));
    const ours = new Map(
      [...buildChildren(cluster, observed), ...found.flatMap((it) => buildLike(it, cluster, observed))].map((it) => [
        nameOf(it),
        it,
      ]),
    );
    return found.map((it) => ({ name: nameOf(it), differences: unintended(it, compare(ours.get(nameOf(it)), it)) }));
  });
}

/** The operator's settings in the observed installation. */
export const observedContext: BuildContext = {
  ...defaultBuildContext,
  operatorImageName: "localhost/cloudnative-pg:1.30.0",
  operatorNamespace: "cnpg-system",
  monitoringQueriesConfigMap: "cnpg-default-monitoring",
};

/** An object of ours with the plugin's part in it. */
export function withSidecar<T extends KubeObject>(object: T, cluster: Cluster, { stores }: Observed): T {
  const byName = new Map(stores.map((it) => [it.metadata.name ?? "", it]));
  const input = {
    cluster,
    stores: readClusterStores(cluster),
    objects: byName,
    image: "localhost/plugin-sidecar:0.14.0",
  };
  return injectSidecar(object, input) as T;
}

function buildChildren(cluster: Cluster, { stores }: Observed): KubeObject[] {
  const context = observedContext;
  return [
    ...desiredServices(cluster, context).flatMap(({ service }) => service ?? []),
    ...desiredDisruptionBudgets(cluster, context).flatMap(({ budget }) => budget ?? []),
    buildServiceAccount(cluster, context, { pullSecret: false }),
    buildRole(cluster, context),
    buildRoleBinding(cluster, context),
    buildLease(cluster, context),
    buildAccessRole(cluster, stores),
    buildAccessBinding(cluster),
  ] as KubeObject[];
}

/** What there is one of for each instance. */
function buildLike(live: KubeObject, cluster: Cluster, observed: Observed): KubeObject[] {
  const serial = parseNodeSerial(live as Pod) ?? Number(live.metadata.labels?.[labels.instanceName]?.split("-").at(-1));
  switch (live.kind) {
    case "Pod":
      return [withSidecar(buildInstancePod(cluster, serial, observedContext), cluster, observed)];
    case "PersistentVolumeClaim":
      return buildPvcs(cluster, serial, observedContext);
    case "Job": {
      const role = live.metadata.labels?.[labels.jobRole];
      const build = role === "join" ? buildJoinJob : role === "initdb" ? buildInitdbJob : buildFullRecoveryJob;
      return [withSidecar(build(cluster, serial, observedContext), cluster, observed)];
    }
    default:
      return [];
  }
}

/** Whether the Cluster owns an object. */
export function ofCluster(object: KubeObject, cluster: Cluster): boolean {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller);
  return owner?.name === cluster.metadata.name;
}

const nameOf = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.name}`;

function unintended({ kind = "" }: KubeObject, differences: readonly string[]): string[] {
  return differences.filter((it) => !deliberate[kind]?.test(it));
}

function compare(ours: KubeObject | undefined, theirs: KubeObject): string[] {
  if (!ours) return ["we make no such object"];
  // A pod carries the spec that was asked for: no default of the API server blurs that comparison.
  const recorded = theirs.metadata.annotations?.[annotations.podSpec];
  const asked = recorded === undefined ? [] : compareRecorded(JSON.parse(recorded) as PodSpec, (ours as Pod).spec);
  return [...asked, ...compareLive(ours, theirs)];
}

/** By the rule that decides about rollouts, and field by field. */
function compareRecorded(recorded: PodSpec, own: PodSpec | undefined): string[] {
  const words = own ? comparePodSpecs(recorded, own) : "we make no spec";
  return [...(words === null ? [] : [words]), ...compareExactly(own, recorded, annotations.podSpec)];
}
