import { clusterName } from "../api/cluster-facts.ts";
import { ports } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Service, ServicePort, ServiceSpec } from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { appLabels, childMetadata } from "./metadata.ts";
import { present } from "./present.ts";

/** The Services that the operator makes for every cluster. */
export type DefaultService = "any" | "r" | "ro" | "rw";

/** A Service of the cluster; without `service` one of that name must not exist. */
export interface DesiredService {
  name: string;
  service?: Service;
}

type ManagedService = NonNullable<
  NonNullable<NonNullable<Cluster["spec"]["managed"]>["services"]>["additional"]
>[number];

/** The default Services in the order of reconciliation, then the ones that the user describes. */
export function desiredServices(cluster: Cluster, context: BuildContext): DesiredService[] {
  const names = childNames(clusterName(cluster));
  const kinds: DefaultService[] = ["any", "r", "ro", "rw"];
  const defaults = kinds.map((kind) =>
    isServiceEnabled(cluster, kind, context)
      ? { name: names[kind], service: buildDefaultService(cluster, kind, context) }
      : { name: names[kind] },
  );
  const additional = (cluster.spec.managed?.services?.additional ?? []).map((managed) => ({
    name: managed.serviceTemplate.metadata?.name ?? "",
    service: buildManagedService(cluster, managed, context),
  }));
  return [...defaults, ...additional];
}

/** Whether one of the default Services is wanted. */
export function isServiceEnabled(cluster: Cluster, kind: DefaultService, context: BuildContext): boolean {
  if (kind === "any") return context.createAnyService;
  return !(cluster.spec.managed?.services?.disabledDefaultServices ?? []).includes(kind);
}

/** One of the default Services, with the note of what was applied. */
export function buildDefaultService(cluster: Cluster, kind: DefaultService, context: BuildContext): Service {
  return noteSpec({
    apiVersion: "v1",
    kind: "Service",
    metadata: childMetadata(cluster, context, {
      name: childNames(clusterName(cluster))[kind],
      labels: appLabels(cluster),
    }),
    spec: present<ServiceSpec>({
      ports: [postgresPort],
      selector: serviceSelector(cluster, kind),
      type: "ClusterIP",
      publishNotReadyAddresses: kind === "any" ? true : undefined,
    }),
  });
}

/** A Service from the user's template; its selector is always ours. */
export function buildManagedService(cluster: Cluster, managed: ManagedService, context: BuildContext): Service {
  const template = managed.serviceTemplate;
  const inherited = childMetadata(cluster, context, { name: template.metadata?.name ?? "" });
  const { ports: userPorts, selector: _, type, ...rest } = template.spec ?? {};
  return noteSpec({
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      ...inherited,
      labels: {
        ...appLabels(cluster),
        ...template.metadata?.labels,
        ...inherited.labels,
        [labels.isManaged]: "true",
      },
      annotations: {
        ...template.metadata?.annotations,
        ...inherited.annotations,
        [annotations.updateStrategy]: managed.updateStrategy ?? "patch",
      },
    },
    spec: {
      ports: withPostgresPort(userPorts ?? []),
      selector: serviceSelector(cluster, managed.selectorType),
      type: type ?? "ClusterIP",
      ...rest,
    },
  });
}

/** Names of owned managed Services that the spec no longer describes. */
export function obsoleteManagedServices(cluster: Cluster, live: readonly Service[]): string[] {
  const wanted = new Set(
    (cluster.spec.managed?.services?.additional ?? []).map(({ serviceTemplate }) => serviceTemplate.metadata?.name),
  );
  return live
    .filter(({ metadata }) => metadata.labels?.[labels.isManaged] === "true")
    .filter(({ metadata }) => metadata.labels?.[labels.cluster] === clusterName(cluster))
    .map(({ metadata }) => metadata.name ?? "")
    .filter((name) => !wanted.has(name));
}

const postgresPort: ServicePort = {
  name: "postgres",
  protocol: "TCP",
  port: ports.postgres,
  targetPort: ports.postgres,
};

function withPostgresPort(list: readonly ServicePort[]): ServicePort[] {
  const present = list.some(({ name, port }) => name === postgresPort.name || port === postgresPort.port);
  return present ? [...list] : [...list, postgresPort];
}

function serviceSelector(cluster: Cluster, kind: DefaultService): Record<string, string> {
  const selector = { [labels.cluster]: clusterName(cluster) };
  switch (kind) {
    case "rw":
      return { ...selector, [labels.instanceRole]: "primary" };
    case "ro":
      return { ...selector, [labels.instanceRole]: "replica" };
    case "r":
    case "any":
      return { ...selector, [labels.podRole]: "instance" };
  }
}

function noteSpec(service: Service): Service {
  return {
    ...service,
    metadata: {
      ...service.metadata,
      annotations: { ...service.metadata.annotations, [annotations.lastAppliedSpec]: JSON.stringify(service.spec) },
    },
  };
}
