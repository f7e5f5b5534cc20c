// The lifecycle hook as a function: from a Cluster, its stores and an object to the object with the sidecar in it. It gives
// the same for the same input and nothing new when its work is done already; what the operation is does not matter.
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Job, Pod, PodSpec } from "../../api/generated/kubernetes.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import type { KubeObject } from "../../ports/kube-api.ts";
import { withSidecar } from "../framework/sidecar.ts";
import { StatusError } from "../framework/status-error.ts";
import { type ClusterStores, type StoreReference, storeNames } from "./cluster-stores.ts";
import { buildCertificatesVolume, buildSidecar, certificatesVolume } from "./sidecar-container.ts";

export interface InjectionInput {
  cluster: Cluster;
  stores: ClusterStores;
  /** Every ObjectStore that the Cluster refers to, by name. */
  objects: ReadonlyMap<string, ObjectStore>;
  image: string;
}

/** The object as the API server is to get it; the object itself when the plugin has nothing to add. */
export function injectSidecar(object: KubeObject, input: InjectionInput): KubeObject {
  const kind = `${object.apiVersion ?? ""} ${object.kind ?? ""}`;
  if (kind === "v1 Pod") return injectPod(object as Pod, input);
  if (kind === "batch/v1 Job") return injectJob(object as Job, input);
  throw new StatusError(
    "INVALID_ARGUMENT",
    `the hook is for pods and jobs, not for a ${kind.trim() || "nameless kind"}`,
  );
}

function injectPod(pod: Pod, input: InjectionInput): Pod {
  const { own, recovery, replicaSource } = input.stores;
  if (!pod.spec || (!own && !replicaSource)) return pod;
  const settings = own ?? recovery ?? replicaSource;
  return { ...pod, spec: extend(pod.spec, input, { mode: "instance", main: "postgres", settings }) };
}

const jobRoles: ReadonlySet<string> = new Set(["full-recovery", "snapshot-recovery"]);

function injectJob(job: Job, input: InjectionInput): Job {
  const role = jobRole(job);
  const template = job.spec?.template;
  const { recovery } = input.stores;
  if (!job.spec || !template?.spec || !recovery || role === undefined || !jobRoles.has(role)) return job;
  const spec = extend(template.spec, input, { mode: "restore", main: role, settings: recovery });
  return { ...job, spec: { ...job.spec, template: { ...template, spec } } };
}

/** The role is found by the label's last part: forks of the operator use a prefix of their own. */
function jobRole(job: Job): string | undefined {
  const found = Object.entries(job.spec?.template.metadata?.labels ?? {}).find(([key]) => key.endsWith("/jobRole"));
  return found?.[1];
}

function extend(
  spec: PodSpec,
  input: InjectionInput,
  part: { mode: "instance" | "restore"; main: string; settings: StoreReference | undefined },
): PodSpec {
  const stores = storeNames(input.stores).flatMap((name) => input.objects.get(name) ?? []);
  const volume = buildCertificatesVolume(stores);
  const main = spec.containers.find(({ name }) => name === part.main);
  if (!main) throw new StatusError("INVALID_ARGUMENT", `the pod has no container ${part.main} beside which to run`);
  const sidecar = buildSidecar({
    cluster: input.cluster,
    image: input.image,
    main,
    mode: part.mode,
    stores,
    settings: part.settings && input.objects.get(part.settings.objectStore),
  });
  const volumes = replaceVolume(spec.volumes ?? [], volume);
  return withSidecar({ ...spec, volumes }, sidecar, { mainContainer: part.main });
}

function replaceVolume(
  volumes: NonNullable<PodSpec["volumes"]>,
  volume: ReturnType<typeof buildCertificatesVolume>,
): NonNullable<PodSpec["volumes"]> {
  const place = volumes.findIndex(({ name }) => name === certificatesVolume);
  if (!volume) return volumes.filter(({ name }) => name !== certificatesVolume);
  return place < 0 ? [...volumes, volume] : volumes.with(place, volume);
}
