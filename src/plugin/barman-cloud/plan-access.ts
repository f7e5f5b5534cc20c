import type { ObjectMeta, PolicyRule, Role, RoleBinding } from "../../api/generated/kubernetes.ts";

/** What a live object needs to become the wanted one. */
export type AccessStep<T> =
  | { kind: "none" }
  | { kind: "create"; object: T }
  | { kind: "update"; object: T; reason: string };

/** Rules are replaced, labels merged; the rest of a live Role stays. */
export function planRole(live: Role | undefined, wanted: Role): AccessStep<Role> {
  if (!live) return { kind: "create", object: wanted };
  const rules = wanted.rules ?? [];
  const metadata = mergeLabels(live.metadata, wanted.metadata);
  if (metadata === live.metadata && sameRules(live.rules ?? [], rules)) return { kind: "none" };
  const reason = metadata === live.metadata ? "the referenced stores changed" : "its labels are incomplete";
  return { kind: "update", object: { ...live, metadata, rules }, reason };
}

/** Only the rules, for a Role that the ObjectStores' controller looks after. */
export function planRules(live: Role, rules: PolicyRule[]): AccessStep<Role> {
  if (sameRules(live.rules ?? [], rules)) return { kind: "none" };
  return { kind: "update", object: { ...live, rules }, reason: "an ObjectStore changed" };
}

/** Subjects are only added, so that those of another release or of the user stay. Throws when the Role is another one. */
export function planBinding(live: RoleBinding | undefined, wanted: RoleBinding): AccessStep<RoleBinding> {
  if (!live) return { kind: "create", object: wanted };
  const { roleRef } = live;
  if (roleRef.kind !== wanted.roleRef.kind || roleRef.name !== wanted.roleRef.name) {
    throw new Error(
      `RoleBinding ${live.metadata.namespace}/${live.metadata.name} refers to ${roleRef.kind} ${roleRef.name} and cannot be changed: delete it, it is made anew`,
    );
  }
  const present = live.subjects ?? [];
  const missing = (wanted.subjects ?? []).filter(
    (subject) =>
      !present.some((it) => it.kind === subject.kind && it.name === subject.name && it.namespace === subject.namespace),
  );
  const metadata = mergeLabels(live.metadata, wanted.metadata);
  if (missing.length === 0 && metadata === live.metadata) return { kind: "none" };
  const reason = missing.length > 0 ? "a service account is missing" : "its labels are incomplete";
  return { kind: "update", object: { ...live, metadata, subjects: [...present, ...missing] }, reason };
}

/** The live metadata itself when it carries every wanted label. */
function mergeLabels(live: ObjectMeta, wanted: ObjectMeta): ObjectMeta {
  const complete = Object.entries(wanted.labels ?? {}).every(([key, value]) => live.labels?.[key] === value);
  return complete ? live : { ...live, labels: { ...live.labels, ...wanted.labels } };
}

function sameRules(left: readonly PolicyRule[], right: readonly PolicyRule[]): boolean {
  const normal = (rules: readonly PolicyRule[]) =>
    JSON.stringify(
      rules.map(({ apiGroups = [], resources = [], verbs = [], resourceNames = [], nonResourceURLs = [] }) => [
        apiGroups,
        resources,
        verbs,
        resourceNames,
        nonResourceURLs,
      ]),
    );
  return normal(left) === normal(right);
}
