import { k8s } from "cdk8s-plus-28";
import type { Construct } from "constructs";
import type { Rule } from "../operator/rules.ts";
import { pluginNames } from "./names.ts";
import type { CompiledPluginOptions } from "./options.ts";

const barman = "barmancloud.cnpg.io";
const rbac = "rbac.authorization.k8s.io";
const read = ["get", "list", "watch"];

function rule(group: string, resources: string[], verbs: string[], resourceNames?: string[]): Rule & PickNames {
  return { apiGroups: [group], resources, verbs, ...(resourceNames ? { resourceNames } : {}) };
}

interface PickNames {
  readonly resourceNames?: string[];
}

/**
 * What the plugin may do everywhere. Secrets, ObjectStores and their status are here because nobody may grant by a Role what
 * he may not do himself; the plugin's own code reads no Secret outside of its namespace.
 */
export const pluginRules: readonly Rule[] = [
  rule(barman, ["objectstores"], read),
  rule(barman, ["objectstores/status"], ["update"]),
  rule("", ["secrets"], read),
  rule(rbac, ["roles", "rolebindings"], ["create", ...read, "update"]),
  // So that the Cluster may be named as an owner that waits for its Role.
  rule("postgresql.cnpg.io", ["clusters/finalizers"], ["update"]),
];

/** ServiceAccount, roles and bindings of the plugin, and the roles meant for users. */
export function addAccess(scope: Construct, options: CompiledPluginOptions): void {
  const { namespace } = options;
  new k8s.KubeServiceAccount(scope, "ServiceAccount", {
    metadata: { name: pluginNames.serviceAccount, namespace },
  });
  const subjects = [{ kind: "ServiceAccount", name: pluginNames.serviceAccount, namespace }];
  addClusterRole(scope, pluginNames.clusterRole, pluginRules);
  new k8s.KubeClusterRoleBinding(scope, "ClusterRoleBinding", {
    metadata: { name: pluginNames.clusterRoleBinding },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: pluginNames.clusterRole },
    subjects,
  });
  const own = (id: string, name: string, bindingName: string, rules: Rule[]) => {
    new k8s.KubeRole(scope, id, { metadata: { name, namespace }, rules });
    new k8s.KubeRoleBinding(scope, `${id}Binding`, {
      metadata: { name: bindingName, namespace },
      roleRef: { apiGroup: rbac, kind: "Role", name },
      subjects,
    });
  };
  own("LeaderElection", pluginNames.leaderElection, pluginNames.leaderElectionBinding, [
    rule("coordination.k8s.io", ["leases"], ["create", "get", "update"]),
  ]);
  if (options.certificates === "self") {
    const secrets = [pluginNames.serverSecret, pluginNames.clientSecret, pluginNames.authoritySecret];
    own("Certificates", pluginNames.certificates, pluginNames.certificatesBinding, [
      rule("", ["services"], ["get"], [pluginNames.service]),
      // The name of what is created is not known to this check.
      rule("", ["secrets"], ["create"]),
      rule("", ["secrets"], ["update"], secrets),
    ]);
  }
  addMetricsAccess(scope, subjects);
  addClusterRole(scope, pluginNames.objectStoreEditor, [
    rule(barman, ["objectstores"], ["create", "delete", ...read, "patch", "update"]),
    rule(barman, ["objectstores/status"], ["get"]),
  ]);
  addClusterRole(scope, pluginNames.objectStoreViewer, [
    rule(barman, ["objectstores"], read),
    rule(barman, ["objectstores/status"], ["get"]),
  ]);
}

/** The plugin asks the API server who wants to read its metrics; the other role is for those who shall be let in. */
function addMetricsAccess(scope: Construct, subjects: k8s.Subject[]): void {
  addClusterRole(scope, pluginNames.metricsAuth, [
    rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
  ]);
  new k8s.KubeClusterRoleBinding(scope, pluginNames.metricsAuthBinding, {
    metadata: { name: pluginNames.metricsAuthBinding },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: pluginNames.metricsAuth },
    subjects,
  });
  new k8s.KubeClusterRole(scope, pluginNames.metricsReader, {
    metadata: { name: pluginNames.metricsReader },
    rules: [{ nonResourceUrLs: ["/metrics"], verbs: ["get"] }],
  });
}

function addClusterRole(scope: Construct, name: string, rules: readonly Rule[]): void {
  new k8s.KubeClusterRole(scope, name, { metadata: { name }, rules: rules.map((it) => ({ ...it })) });
}
