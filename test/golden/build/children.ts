import { buildApplicationSecret, buildSuperuserSecret, wantsSuperuserSecret } from "../../../src/build/credentials.ts";
import { desiredDisruptionBudgets } from "../../../src/build/disruption-budgets.ts";
import { buildInstancePod, recordPodSpec } from "../../../src/build/instance-pod.ts";
import { buildInitdbJob, buildJoinJob } from "../../../src/build/jobs.ts";
import { buildFailoverQuorum, buildLease, wantsFailoverQuorum } from "../../../src/build/lease.ts";
import { buildPodMonitor, wantsPodMonitor } from "../../../src/build/monitoring.ts";
import { buildPvcs } from "../../../src/build/pvcs.ts";
import { buildRole, buildRoleBinding } from "../../../src/build/role.ts";
import { buildServiceAccount } from "../../../src/build/service-account.ts";
import { desiredServices } from "../../../src/build/services.ts";
import { applyDefaults } from "../../../src/schema/admission/index.ts";
import { applySchemaDefaults } from "../../../src/schema/crd/index.ts";
import type { GoldenCase } from "./clusters.ts";

const password = "0123456789".padEnd(64, "x");

/** All children of a cluster as they are first made; certificates apart, which are random. */
export function buildChildren({ cluster, context, pullSecret }: GoldenCase): object[] {
  const complete = applyDefaults(applySchemaDefaults("Cluster", cluster), { mode: "enforce", settings: context });
  return [
    ...(wantsSuperuserSecret(complete) ? [buildSuperuserSecret(complete, password, context)] : []),
    buildApplicationSecret(complete, password, context),
    ...desiredServices(complete, context).flatMap(({ service }) => service ?? []),
    ...desiredDisruptionBudgets(complete, context).flatMap(({ budget }) => budget ?? []),
    buildServiceAccount(complete, context, { pullSecret }),
    buildRole(complete, context),
    buildRoleBinding(complete, context),
    ...(wantsPodMonitor(complete) ? [buildPodMonitor(complete, context)] : []),
    ...(wantsFailoverQuorum(complete) ? [buildFailoverQuorum(complete, context)] : []),
    buildLease(complete, context),
    ...buildPvcs(complete, 1, context),
    buildInitdbJob(complete, 1, context),
    buildJoinJob(complete, 2, context),
    recordPodSpec(buildInstancePod(complete, 1, context)),
  ];
}
