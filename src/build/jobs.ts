import { applicationDatabase, clusterName, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { EnvVar, Job, JobSpec, ObjectMeta, Volume, VolumeMount } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { childNames, instanceName, type JobRole, jobName } from "../api/names.ts";
import { buildJobAffinity } from "./affinity.ts";
import { appArmorAnnotations, bootstrapContainer, jobContainer } from "./containers.ts";
import type { BuildContext } from "./context.ts";
import { initdbCommand } from "./initdb-command.ts";
import { podScaffold } from "./instance-pod.ts";
import { appLabels, childMetadata } from "./metadata.ts";
import { present } from "./present.ts";
import { type EndpointCa, endpointCaParts } from "./recovery-ca.ts";
import { sqlRefsVolumes } from "./sql-refs.ts";
import { buildVolumes } from "./volumes.ts";
import { walFlags } from "./wal-flags.ts";

/** The Job that makes a new database system for an instance, importing from elsewhere if the bootstrap says so. */
export function buildInitdbJob(cluster: Cluster, serial: number, context: BuildContext): Job {
  const section = cluster.spec.bootstrap?.initdb ?? {};
  if (section.import)
    return buildJob(cluster, serial, context, { role: "import", command: initdbCommand(cluster, section) });
  return buildJob(cluster, serial, context, {
    role: "initdb",
    command: initdbCommand(cluster, section),
    // Nothing reads this variable: it keeps the pod waiting until the secret exists.
    env: applicationDatabase(cluster)
      ? [
          {
            name: "APP_USERNAME",
            valueFrom: { secretKeyRef: { name: secretNames(cluster).app, key: "username", optional: false } },
          },
        ]
      : [],
    ...sqlRefsVolumes(section),
  });
}

/** The Job that clones a replica from the primary. */
export function buildJoinJob(cluster: Cluster, serial: number, context: BuildContext): Job {
  const parent = childNames(clusterName(cluster)).rw;
  const command = ["join", "--parent-node", parent, ...walFlags(cluster)];
  return buildJob(cluster, serial, context, { role: "join", command });
}

/** The Job that copies a running PostgreSQL of elsewhere by `pg_basebackup`. */
export function buildPgBaseBackupJob(cluster: Cluster, serial: number, context: BuildContext): Job {
  return buildJob(cluster, serial, context, { role: "pgbasebackup", command: ["pgbasebackup", ...walFlags(cluster)] });
}

/** The Job that restores a backup from an object store. */
export function buildFullRecoveryJob(
  cluster: Cluster,
  serial: number,
  context: BuildContext,
  options: { endpointCa?: EndpointCa } = {},
): Job {
  const parts = endpointCaParts(options.endpointCa);
  return buildJob(cluster, serial, context, {
    role: "full-recovery",
    command: ["restore", ...walFlags(cluster)],
    ...parts,
  });
}

/** The Job that makes an instance's data directory out of restored volume snapshots; `immediate` is for replicas. */
export function buildSnapshotRecoveryJob(
  cluster: Cluster,
  serial: number,
  context: BuildContext,
  options: { immediate?: boolean; backupLabel?: string; tablespaceMap?: string; endpointCa?: EndpointCa } = {},
): Job {
  const command = ["restoresnapshot"];
  if (options.immediate) command.push("--immediate");
  if (options.backupLabel) command.push(`--backuplabel=${options.backupLabel}`);
  if (options.tablespaceMap) command.push(`--tablespacemap=${options.tablespaceMap}`);
  command.push(...walFlags(cluster));
  const parts = endpointCaParts(options.endpointCa);
  return buildJob(cluster, serial, context, { role: "snapshot-recovery", command, ...parts });
}

/** What distinguishes one job from another. */
export interface JobParts {
  role: JobRole;
  /** Arguments after `instance`, without log flags. */
  command: readonly string[];
  /** Image of the job's container; that of the instances when absent. */
  image?: string;
  env?: readonly EnvVar[];
  volumes?: readonly Volume[];
  mounts?: readonly VolumeMount[];
}

/** A Job that runs one of the instance manager's commands on the volumes of an instance. */
export function buildJob(cluster: Cluster, serial: number, context: BuildContext, parts: JobParts): Job {
  const instance = instanceName(clusterName(cluster), serial);
  const name = jobName(instance, parts.role);
  const metadata = childMetadata(cluster, context, {
    name,
    block: true,
    labels: { ...appLabels(cluster), [labels.instanceName]: instance, [labels.jobRole]: parts.role },
  });
  const container = jobContainer(
    cluster,
    {
      role: parts.role,
      podName: name,
      command: parts.command,
      env: parts.env ?? [],
      ...(parts.image ? { image: parts.image } : {}),
    },
    context,
  );
  container.volumeMounts = [...(container.volumeMounts ?? []), ...(parts.mounts ?? [])];
  const initContainers = [bootstrapContainer(cluster, context)];
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata,
    spec: present<JobSpec>({
      template: {
        metadata: present<ObjectMeta>({
          labels: metadata.labels,
          annotations: { ...metadata.annotations, ...appArmorAnnotations(cluster, [container, ...initContainers]) },
        }),
        spec: podScaffold(cluster, {
          hostname: name,
          affinity: buildJobAffinity(cluster),
          volumes: [...buildVolumes(cluster, instance), ...(parts.volumes ?? [])],
          initContainers,
          containers: [container],
          restartPolicy: "Never",
          context,
        }),
      },
    }),
  };
}
