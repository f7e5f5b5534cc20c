import { k8s } from "cdk8s-plus-28";
import type { Construct } from "constructs";
import type { CompiledOperatorOptions } from "./options.ts";
import { operatorRules, userRoles } from "./rules.ts";

/** ServiceAccount, ClusterRole and binding of the operator, and the roles meant for users. */
export function addAccess(scope: Construct, options: CompiledOperatorOptions): void {
  new k8s.KubeServiceAccount(scope, "ServiceAccount", {
    metadata: { name: "cnpg-manager", namespace: options.namespace },
  });
  new k8s.KubeClusterRole(scope, "ClusterRole", {
    metadata: { name: "cnpg-manager" },
    rules: operatorRules.map((rule) => ({ ...rule })),
  });
  new k8s.KubeClusterRoleBinding(scope, "ClusterRoleBinding", {
    metadata: { name: "cnpg-manager-rolebinding" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cnpg-manager" },
    subjects: [{ kind: "ServiceAccount", name: "cnpg-manager", namespace: options.namespace }],
  });
  for (const [name, rules] of Object.entries(userRoles)) {
    new k8s.KubeClusterRole(scope, name, { metadata: { name }, rules: rules.map((rule) => ({ ...rule })) });
  }
}
