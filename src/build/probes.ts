import { ports } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Probe } from "../api/generated/kubernetes.ts";

/** The probe fields a user may set; absent and zero both mean "ours". */
interface ProbeOverrides {
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
}

/** Probes of the postgres container. What they look at is decided by the instance manager when it is asked. */
export function buildProbes(cluster: Cluster): { startup: Probe; readiness: Probe; liveness: Probe } {
  const { probes, startDelay, livenessProbeTimeout } = cluster.spec;
  return {
    startup: withThreshold(statusProbe("/startupz", probes?.startup), startDelay || 3600),
    readiness: statusProbe("/readyz", probes?.readiness),
    liveness: withThreshold(statusProbe("/healthz", probes?.liveness), livenessProbeTimeout),
  };
}

function statusProbe(path: string, overrides: ProbeOverrides | undefined): Probe {
  const initialDelaySeconds = overrides?.initialDelaySeconds || undefined;
  const successThreshold = overrides?.successThreshold || undefined;
  const failureThreshold = overrides?.failureThreshold || undefined;
  const termination = overrides?.terminationGracePeriodSeconds;
  return {
    httpGet: { path, port: ports.status, scheme: "HTTPS" },
    ...(initialDelaySeconds ? { initialDelaySeconds } : {}),
    timeoutSeconds: overrides?.timeoutSeconds || 5,
    periodSeconds: overrides?.periodSeconds || 10,
    ...(successThreshold ? { successThreshold } : {}),
    ...(failureThreshold ? { failureThreshold } : {}),
    ...(termination === undefined ? {} : { terminationGracePeriodSeconds: termination }),
  };
}

/** Allows as many failures as fit into the time; a threshold that the user set stays. */
function withThreshold(probe: Probe, seconds: number | undefined): Probe {
  if (probe.failureThreshold !== undefined || seconds === undefined) return probe;
  const { terminationGracePeriodSeconds, ...rest } = probe;
  return {
    ...rest,
    failureThreshold: Math.max(1, Math.ceil(seconds / (probe.periodSeconds ?? 10))),
    ...(terminationGracePeriodSeconds === undefined ? {} : { terminationGracePeriodSeconds }),
  };
}
