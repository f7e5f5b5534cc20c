import { envVar, resourceRequirements } from "./core/generated/kubernetes.ts";
import { dateTime, integer, listOf, mapOf, object, required, stringList, use } from "./parts/builders.ts";
import { defineKind } from "./parts/definition.ts";
import { pluginObjectStore, retentionPolicy } from "./shared/object-store.ts";
import { logLevel } from "./shared/words.ts";

const sidecar = object("How the plugin's sidecar runs in the pods of the clusters that use this store.", {
  additionalContainerArgs: stringList("More arguments for the sidecar's command line.", {
    rules: [
      {
        rule: "!self.exists(a, a.startsWith('--log-level'))",
        message: "do not set --log-level in additionalContainerArgs; use spec.instanceSidecarConfiguration.logLevel",
        reason: "FieldValueForbidden",
      },
    ],
  }),
  env: listOf("Environment variables of the sidecar.", envVar),
  logLevel,
  resources: use("CPU and memory of the sidecar.", resourceRequirements),
  retentionPolicyIntervalSeconds: integer("Seconds between two looks at the retention policy.", { default: 1800 }),
});

const recoveryWindow = object("What one server can be restored to.", {
  firstRecoverabilityPoint: dateTime("Earliest time that can be restored."),
  lastFailedBackupTime: dateTime("When a backup last failed."),
  lastSuccessfulBackupTime: dateTime("When a backup last succeeded."),
});

/** CustomResourceDefinition of ObjectStore, the barman-cloud plugin's own kind. */
export const objectStore = defineKind({
  group: "barmancloud.cnpg.io",
  kind: "ObjectStore",
  description: "An object store that clusters archive to and restore from through the barman-cloud plugin.",
  spec: object("The store, what is kept in it and how the sidecar runs.", {
    configuration: required(pluginObjectStore),
    instanceSidecarConfiguration: sidecar,
    retentionPolicy,
  }),
  status: object("What the store holds.", {
    serverRecoveryWindow: mapOf("Recovery window of each server in the store, by server name.", recoveryWindow),
  }),
});
