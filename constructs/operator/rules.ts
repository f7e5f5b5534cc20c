/** One rule of a ClusterRole. */
export interface Rule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly verbs: string[];
}

const read = ["get", "list", "watch"];
const statusWrite = ["get", "patch", "update"];

function rule(group: string, resources: string[], verbs: string[]): Rule {
  return { apiGroups: [group], resources, verbs };
}

const cnpg = "postgresql.cnpg.io";

/**
 * What the operator may do, and no more. It must itself hold every permission that it hands to the
 * instances by their Role, or the API server refuses to create that Role.
 */
export const operatorRules: readonly Rule[] = [
  rule("", ["configmaps", "secrets", "services"], ["create", "delete", ...read, "patch", "update"]),
  rule("", ["configmaps/status", "secrets/status"], statusWrite),
  rule("", ["events"], ["create", "patch"]),
  rule("", ["nodes"], read),
  rule("", ["persistentvolumeclaims", "pods", "pods/exec"], ["create", "delete", ...read, "patch"]),
  rule("", ["pods/status"], ["get"]),
  rule("", ["serviceaccounts"], ["create", ...read, "patch", "update"]),
  rule(
    "admissionregistration.k8s.io",
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    ["get", "patch"],
  ),
  rule("apps", ["deployments"], ["create", "delete", ...read, "patch", "update"]),
  rule("batch", ["jobs"], ["create", "delete", ...read, "patch"]),
  rule("coordination.k8s.io", ["leases"], ["create", ...read, "update"]),
  rule("discovery.k8s.io", ["endpointslices"], read),
  rule("monitoring.coreos.com", ["podmonitors"], ["create", "delete", ...read, "patch"]),
  rule("policy", ["poddisruptionbudgets"], ["create", "delete", ...read, "patch", "update"]),
  rule(
    cnpg,
    [
      "backups",
      "clusters",
      "databaseroles",
      "databases",
      "poolers",
      "publications",
      "scheduledbackups",
      "subscriptions",
    ],
    ["create", "delete", ...read, "patch", "update"],
  ),
  rule(
    cnpg,
    ["backups/status", "databases/status", "publications/status", "scheduledbackups/status", "subscriptions/status"],
    statusWrite,
  ),
  rule(
    cnpg,
    ["clusters/status", "databaseroles/status", "failoverquorums/status", "poolers/status"],
    [...statusWrite, "watch"],
  ),
  rule(cnpg, ["clusters/finalizers", "databaseroles/finalizers", "poolers/finalizers"], ["update"]),
  rule(cnpg, ["failoverquorums"], ["create", "delete", ...read]),
  rule(cnpg, ["clusterimagecatalogs", "imagecatalogs"], read),
  rule("rbac.authorization.k8s.io", ["rolebindings", "roles"], ["create", ...read, "patch", "update"]),
  rule("snapshot.storage.k8s.io", ["volumesnapshots"], ["create", ...read, "patch"]),
];

const edited = ["databases", "publications", "subscriptions"] as const;

/** Roles that a cluster administrator may grant to users, by name. */
export const userRoles: Readonly<Record<string, readonly Rule[]>> = Object.fromEntries(
  edited.flatMap((plural) => {
    const singular = plural.slice(0, -1);
    return [
      [
        `cnpg-${singular}-editor-role`,
        [
          rule(cnpg, [plural], ["create", "delete", "get", "list", "patch", "update", "watch"]),
          rule(cnpg, [`${plural}/status`], ["get"]),
        ],
      ],
      [`cnpg-${singular}-viewer-role`, [rule(cnpg, [plural], read), rule(cnpg, [`${plural}/status`], ["get"])]],
    ];
  }),
);
