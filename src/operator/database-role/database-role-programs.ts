import { secretNames } from "../../api/cluster-facts.ts";
import { clientCertificateSecret } from "../../api/database-role.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import type { KubeObject } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { createController } from "../../runtime/controller.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createWorkQueue } from "../../runtime/work-queue.ts";
import { keyOf } from "../cluster-controller.ts";
import { untilAborted } from "../until-aborted.ts";
import { createDatabaseRoleReconciler, type DatabaseRoleOptions } from "./database-role-controller.ts";

/** The controller of DatabaseRoles with what wakes it, for the leader only. */
export function createDatabaseRolePrograms(
  options: DatabaseRoleOptions & { logger: Logger; metrics: Metrics },
): Runnable[] {
  const { stores, clock, logger, metrics } = options;
  const name = "database-role";
  const queue = createWorkQueue({ name, clock, metrics: metrics.forQueue(name) });
  const wake = (namespace: string | undefined, concerns: (role: DatabaseRole) => boolean) => {
    for (const role of stores.databaseRoles.list(namespace).filter(concerns)) queue.add(keyOf(role));
  };
  return [
    {
      name: "database role watches",
      async run(stop) {
        const stops = [
          stores.databaseRoles.subscribe(({ object }) => queue.add(keyOf(object))),
          stores.secrets.subscribe(({ object }) =>
            wake(object.metadata.namespace, (role) => usesSecret(role, object, authorityOf(options, role))),
          ),
          stores.clusters.subscribe((event) => {
            const { namespace, name: cluster, generation } = event.object.metadata;
            const before = event.type === "updated" ? event.previous?.metadata.generation : undefined;
            if (before !== generation) wake(namespace, ({ spec }) => spec.cluster.name === cluster);
          }),
        ];
        wake(undefined, () => true);
        await untilAborted(stop);
        for (const each of stops) each();
      },
    },
    createController({
      name,
      queue,
      reconcile: createDatabaseRoleReconciler(options),
      logger,
      clock,
      metrics: metrics.forController(name, 1),
    }),
  ];
}

function authorityOf({ stores }: DatabaseRoleOptions, role: DatabaseRole): string | undefined {
  const key = { namespace: role.metadata.namespace ?? "", name: role.spec.cluster.name ?? "" };
  const cluster = stores.clusters.get(key);
  return cluster && secretNames(cluster).clientCa;
}

function usesSecret(role: DatabaseRole, { metadata: { name } }: KubeObject, authority: string | undefined): boolean {
  return (
    name === role.spec.passwordSecret?.name ||
    name === clientCertificateSecret(role.metadata.name ?? "") ||
    (name === authority && role.spec.clientCertificate !== undefined)
  );
}
