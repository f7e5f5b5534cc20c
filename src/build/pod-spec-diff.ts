import type { Container, PodSpec } from "../api/generated/kubernetes.ts";
import { comparableSpec } from "./comparable-spec.ts";
import { sameJson } from "./same-json.ts";

/** Difference between two things of one kind: null when there is none, else what differs, possibly empty. */
type Difference = string | null;

/**
 * Tells in words how the spec noted on a pod differs from the one it would get now, or null when it does not.
 * The order of checks is fixed, so equal differences give equal texts. `compatible`: only what CloudNativePG compares too, so that
 * no pod of its own is replaced because another operator has taken over. @default compatible false
 */
export function comparePodSpecs(stored: PodSpec, target: PodSpec, { compatible = false } = {}): string | null {
  const before = comparableSpec(stored);
  const after = comparableSpec(target);
  const field = (name: keyof PodSpec): Difference => (sameJson(before[name], after[name]) ? null : "");
  const checks: readonly [component: string, difference: () => Difference][] = [
    ["volumes", () => compareLists(before.volumes, after.volumes, ({ name }) => name)],
    ["containers", () => compareContainers(before.containers, after.containers, compatible)],
    ["init-containers", () => compareContainers(comparableInit(before), comparableInit(after), compatible)],
    ["security-context", () => field("securityContext")],
    ["affinity", () => field("affinity")],
    ["tolerations", () => field("tolerations")],
    ["node-selector", () => field("nodeSelector")],
    ["topology-spread-constraints", () => field("topologySpreadConstraints")],
    ["service-account-name", () => field("serviceAccountName")],
    ["scheduler-name", () => field("schedulerName")],
    ["hostname", () => field("hostname")],
    ["termination-grace-period", () => field("terminationGracePeriodSeconds")],
    ...(compatible ? [] : ownChecks(field)),
  ];
  const found = firstDifference(checks);
  return found === null ? null : `original and target PodSpec differ in ${found}`;
}

/** Ours: CloudNativePG lets these reach a pod when it is next made. */
function ownChecks(field: (name: keyof PodSpec) => Difference): readonly [string, () => Difference][] {
  return [
    ["priority-class-name", () => field("priorityClassName")],
    ["subdomain", () => field("subdomain")],
  ];
}

/** A new operator image reaches the pods in its own way; the container that carries it is not compared. */
function comparableInit(spec: PodSpec): Container[] {
  return (spec.initContainers ?? []).filter(({ name }) => name !== "bootstrap-controller");
}

function compareContainers(before: readonly Container[], after: readonly Container[], compatible: boolean): Difference {
  for (const container of before) {
    const match = after.find(({ name }) => name === container.name);
    if (!match) return `container ${container.name} has been removed`;
    const difference = compareContainer(container, match, compatible);
    if (difference !== null) return `container ${container.name} differs in ${difference}`;
  }
  const added = after.find(({ name }) => !before.some((container) => container.name === name));
  return added ? `container ${added.name} has been added` : null;
}

function compareContainer(before: Container, after: Container, compatible: boolean): Difference {
  const field = (name: keyof Container): Difference => (sameJson(before[name], after[name]) ? null : "");
  return firstDifference([
    ["image", () => field("image")],
    ["environment", () => compareEnvironment(before, after)],
    ["readiness-probe", () => field("readinessProbe")],
    ["liveness-probe", () => field("livenessProbe")],
    ["startup-probe", () => field("startupProbe")],
    ["command", () => field("command")],
    ["args", () => (compatible ? null : field("args"))],
    ["resources", () => field("resources")],
    [
      "ports",
      () => compareLists(before.ports, after.ports, ({ name, containerPort }) => name ?? String(containerPort)),
    ],
    ["security-context", () => field("securityContext")],
    // By path: one volume may be mounted in several places.
    ["volume-mounts", () => compareLists(before.volumeMounts, after.volumeMounts, ({ mountPath }) => mountPath)],
  ]);
}

function compareEnvironment(before: Container, after: Container): Difference {
  return (
    compareLists(before.env, after.env, ({ name }) => name) ??
    (sameJson(before.envFrom, after.envFrom) ? null : "element envFrom has differing value")
  );
}

function compareLists<T>(
  before: readonly T[] | undefined,
  after: readonly T[] | undefined,
  key: (element: T) => string,
): Difference {
  const left = new Map((before ?? []).map((element) => [key(element), element]));
  const right = new Map((after ?? []).map((element) => [key(element), element]));
  for (const [name, element] of left) {
    const match = right.get(name);
    if (match === undefined) return `element ${name} has been removed`;
    if (!sameJson(element, match)) return `element ${name} has differing value`;
  }
  for (const name of right.keys()) if (!left.has(name)) return `element ${name} has been added`;
  return null;
}

function firstDifference(checks: readonly [name: string, difference: () => Difference][]): Difference {
  for (const [name, check] of checks) {
    const difference = check();
    if (difference !== null) return difference === "" ? name : `${name}: ${difference}`;
  }
  return null;
}
