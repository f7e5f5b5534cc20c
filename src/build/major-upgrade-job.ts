import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import { paths } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Container, Job, PodTemplateSpec } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { instanceName, jobName } from "../api/names.ts";
import { jobContainer } from "./containers.ts";
import type { BuildContext } from "./context.ts";
import { buildJob } from "./jobs.ts";
import { present } from "./present.ts";
import { extensionMounts, extensionVolumes } from "./volumes.ts";

const oldFolder = `${paths.scratch}/old`;

/**
 * The Job that upgrades the primary's data to the target version: an init container notes where the old programs are, the
 * job itself runs in the target's image. It is tried once.
 */
export function buildMajorUpgradeJob(cluster: Cluster, serial: number, context: BuildContext): Job {
  const current = cluster.status?.pgDataImageInfo;
  const target = cluster.status?.targetPgDataImageInfo;
  if (!current || !target)
    throw new Error(
      `cluster ${clusterNamespace(cluster)}/${clusterName(cluster)} has no image to upgrade from and to in its status: ` +
        "resolve both before the job is made",
    );
  const extensions = target.extensions ?? [];
  const job = buildJob(cluster, serial, context, {
    role: "major-upgrade",
    command: ["upgrade", "execute", `${oldFolder}/bindir.txt`],
    image: target.image,
    volumes: extensionVolumes("new", extensions),
    mounts: extensionMounts("new", "/new-extensions", extensions),
  });
  const template = job.spec?.template ?? {};
  return {
    ...job,
    spec: { ...job.spec, backoffLimit: 0, template: withPreparation(cluster, serial, context, template) },
  };
}

function withPreparation(
  cluster: Cluster,
  serial: number,
  context: BuildContext,
  template: PodTemplateSpec,
): PodTemplateSpec {
  const podName = jobName(instanceName(clusterName(cluster), serial), "major-upgrade");
  const image = cluster.status?.pgDataImageInfo?.image ?? "";
  const shared = jobContainer(cluster, { role: "prepare", podName, command: [], image }, context);
  const prepare = present<Container>({
    ...shared,
    command: [paths.manager, "instance", "upgrade", "prepare", oldFolder],
  });
  const role = { [labels.legacyRole]: "primary", [labels.instanceRole]: "primary" };
  return {
    metadata: { ...template.metadata, labels: { ...template.metadata?.labels, ...role } },
    spec: {
      ...template.spec,
      containers: template.spec?.containers ?? [],
      initContainers: [...(template.spec?.initContainers ?? []), prepare],
    },
  };
}
