import { applyPatch, type Operation } from "rfc6902";
import { clusterName, clusterNamespace, serviceAccountName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Affinity, Container, Pod, PodSpec, Volume } from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { childNames, instanceName } from "../api/names.ts";
import { buildAffinity } from "./affinity.ts";
import { appArmorAnnotations, bootstrapContainer, postgresContainer } from "./containers.ts";
import type { BuildContext } from "./context.ts";
import { hashEnvironment } from "./environment.ts";
import { appLabels, childMetadata } from "./metadata.ts";
import { nonEmpty, present } from "./present.ts";
import { podSecurityContext } from "./security.ts";
import { buildVolumes } from "./volumes.ts";

/**
 * The pod of an instance, the user's pod patch applied. The plugins evaluate its spec next, then `recordPodSpec` notes the
 * outcome on it. Throws when the patch does not apply.
 */
export function buildInstancePod(cluster: Cluster, serial: number, context: BuildContext): Pod {
  const name = instanceName(clusterName(cluster), serial);
  const container = postgresContainer(cluster, name, context);
  const initContainers = [bootstrapContainer(cluster, context)];
  const restartedAt = cluster.metadata.annotations?.[annotations.restartedAt];
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: childMetadata(cluster, context, {
      name,
      block: true,
      labels: { ...appLabels(cluster), [labels.instanceName]: name, [labels.podRole]: "instance" },
      annotations: {
        ...appArmorAnnotations(cluster, [container, ...initContainers]),
        ...(restartedAt === undefined ? {} : { [annotations.restartedAt]: restartedAt }),
        [annotations.nodeSerial]: String(serial),
        [annotations.podEnvHash]: hashEnvironment(container.env ?? [], container.envFrom ?? []),
      },
    }),
    spec: present<PodSpec>({
      ...podScaffold(cluster, {
        affinity: buildAffinity(cluster),
        hostname: name,
        volumes: buildVolumes(cluster, name),
        initContainers,
        containers: [container],
        terminationGracePeriodSeconds: cluster.spec.stopDelay || 1800,
        subdomain: context.createAnyService ? childNames(clusterName(cluster)).any : undefined,
        context,
      }),
    }),
  };
  return applyPodPatch(cluster, pod);
}

/** Notes the pod's own spec on it, for later comparisons. */
export function recordPodSpec(pod: Pod): Pod {
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      annotations: { ...pod.metadata.annotations, [annotations.podSpec]: JSON.stringify(pod.spec ?? {}) },
    },
  };
}

/** The spec noted on a pod; `undefined` when it is absent or unreadable. */
export function parseRecordedPodSpec(pod: Pod): PodSpec | undefined {
  const text = pod.metadata.annotations?.[annotations.podSpec];
  if (!text) return undefined;
  try {
    const spec = JSON.parse(text) as PodSpec | null;
    return spec && typeof spec === "object" && Array.isArray(spec.containers) ? spec : undefined;
  } catch {
    return undefined;
  }
}

/** What the specs of instance pods and of job pods have in common, fields in the order of the Kubernetes API. */
export function podScaffold(
  cluster: Cluster,
  pod: {
    hostname: string;
    volumes: Volume[];
    initContainers: Container[];
    containers: Container[];
    restartPolicy?: string;
    terminationGracePeriodSeconds?: number;
    subdomain?: string | undefined;
    affinity: Affinity | undefined;
    context: BuildContext;
  },
): PodSpec {
  const { affinity, schedulerName, priorityClassName, topologySpreadConstraints } = cluster.spec;
  const nodeSelector = affinity?.nodeSelector;
  return present<PodSpec>({
    volumes: pod.volumes,
    initContainers: pod.initContainers,
    containers: pod.containers,
    restartPolicy: pod.restartPolicy,
    terminationGracePeriodSeconds: pod.terminationGracePeriodSeconds,
    nodeSelector: nodeSelector && Object.keys(nodeSelector).length > 0 ? nodeSelector : undefined,
    serviceAccountName: serviceAccountName(cluster),
    securityContext: podSecurityContext(cluster, pod.context),
    hostname: pod.hostname,
    subdomain: pod.subdomain,
    affinity: pod.affinity,
    schedulerName: schedulerName || undefined,
    tolerations: nonEmpty(affinity?.tolerations),
    priorityClassName: priorityClassName || undefined,
    topologySpreadConstraints: nonEmpty(topologySpreadConstraints),
  });
}

function applyPodPatch(cluster: Cluster, pod: Pod): Pod {
  const text = cluster.metadata.annotations?.[annotations.podPatch];
  if (!text) return pod;
  const where = `annotation ${annotations.podPatch} of cluster ${clusterNamespace(cluster)}/${clusterName(cluster)}`;
  let operations: unknown;
  try {
    operations = JSON.parse(text);
  } catch (error) {
    throw new Error(`${where} is not JSON: write a JSON patch (RFC 6902) or remove it`, { cause: error });
  }
  if (!Array.isArray(operations)) throw new Error(`${where} is not a list: write a JSON patch (RFC 6902) or remove it`);
  const patched = structuredClone(pod);
  const failures = applyPatch(patched, operations as Operation[]).filter((failure) => failure !== null);
  if (failures.length > 0)
    throw new Error(`${where} does not apply to pod ${pod.metadata.name}: ${failures.map(String).join("; ")}`);
  return patched;
}
