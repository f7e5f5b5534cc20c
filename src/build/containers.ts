import { paths, ports } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Container, ContainerPort, EnvVar } from "../api/generated/kubernetes.ts";
import { annotations, appArmorPrefix } from "../api/labels.ts";
import type { BuildContext } from "./context.ts";
import { buildEnvironment, logFlags } from "./environment.ts";
import { nonEmpty, present } from "./present.ts";
import { buildProbes } from "./probes.ts";
import { containerSecurityContext } from "./security.ts";
import { buildVolumeMounts } from "./volumes.ts";

/** The init container that puts our programs into the scratch volume. */
export function bootstrapContainer(cluster: Cluster, context: BuildContext): Container {
  return present<Container>({
    name: "bootstrap-controller",
    image: context.operatorImageName,
    command: ["/manager", "bootstrap", paths.manager, ...logFlags(cluster, context)],
    resources: cluster.spec.resources ?? {},
    volumeMounts: buildVolumeMounts(cluster),
    imagePullPolicy: cluster.spec.imagePullPolicy || undefined,
    securityContext: containerSecurityContext(cluster),
  });
}

/** The container that runs PostgreSQL under the instance manager. */
export function postgresContainer(cluster: Cluster, podName: string, context: BuildContext): Container {
  const probes = buildProbes(cluster);
  return present<Container>({
    name: "postgres",
    image: operandImage(cluster, context),
    command: [paths.manager, "instance", "run", ...runFlags(cluster), ...logFlags(cluster, context)],
    ports: containerPorts(cluster),
    envFrom: nonEmpty(cluster.spec.envFrom),
    env: buildEnvironment(cluster, podName, context),
    resources: cluster.spec.resources ?? {},
    volumeMounts: buildVolumeMounts(cluster),
    livenessProbe: probes.liveness,
    readinessProbe: probes.readiness,
    startupProbe: probes.startup,
    imagePullPolicy: cluster.spec.imagePullPolicy || undefined,
    securityContext: containerSecurityContext(cluster),
  });
}

/** The container of a job: the operand image with one of the instance manager's commands. */
export function jobContainer(
  cluster: Cluster,
  job: { role: string; podName: string; command: readonly string[]; env?: readonly EnvVar[]; image?: string },
  context: BuildContext,
): Container {
  return present<Container>({
    name: job.role,
    image: job.image ?? operandImage(cluster, context),
    command: [paths.manager, "instance", ...job.command, ...logFlags(cluster, context)],
    envFrom: nonEmpty(cluster.spec.envFrom),
    env: [...buildEnvironment(cluster, job.podName, context), ...(job.env ?? [])],
    resources: cluster.spec.resources ?? {},
    volumeMounts: buildVolumeMounts(cluster),
    imagePullPolicy: cluster.spec.imagePullPolicy || undefined,
    securityContext: containerSecurityContext(cluster),
  });
}

/** Image that instances run: what the operator resolved, else what the spec names. */
export function operandImage(cluster: Cluster, context: BuildContext): string {
  return cluster.status?.image || cluster.spec.imageName || context.defaultPostgresImage;
}

/** AppArmor annotations of the cluster that name a container of the pod. */
export function appArmorAnnotations(cluster: Cluster, containers: readonly { name: string }[]): Record<string, string> {
  const keys = new Set(containers.map(({ name }) => `${appArmorPrefix}${name}`));
  return Object.fromEntries(Object.entries(cluster.metadata.annotations ?? {}).filter(([key]) => keys.has(key)));
}

function runFlags(cluster: Cluster): string[] {
  return [
    ...(wantsPprof(cluster) ? ["--pprof-server"] : []),
    "--status-port-tls",
    ...(cluster.spec.monitoring?.tls?.enabled ? ["--metrics-port-tls"] : []),
  ];
}

function containerPorts(cluster: Cluster): ContainerPort[] {
  return [
    { name: "postgresql", containerPort: ports.postgres, protocol: "TCP" },
    { name: "metrics", containerPort: ports.metrics, protocol: "TCP" },
    { name: "status", containerPort: ports.status, protocol: "TCP" },
    ...(wantsPprof(cluster) ? [{ name: "pprof", containerPort: ports.pprof, protocol: "TCP" }] : []),
  ];
}

function wantsPprof(cluster: Cluster): boolean {
  return cluster.metadata.annotations?.[annotations.enableInstancePprof] === "true";
}
