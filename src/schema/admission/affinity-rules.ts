import type { Cluster } from "../../api/generated/cluster.ts";
import { type FieldIssue, invalid, notSupported } from "./field-issue.ts";
import { checkLabelName, checkLabelValue } from "./label-syntax.ts";
import { type ClusterRule, when } from "./rule.ts";

type Toleration = NonNullable<NonNullable<Cluster["spec"]["affinity"]>["tolerations"]>[number];

/** Where pods may run. Tolerations follow the rules that Kubernetes has for pods. */
export const checkAffinity: ClusterRule = ({ spec }) => [
  ...when(
    !["", "preferred", "required"].includes(spec.affinity?.podAntiAffinityType ?? ""),
    invalid(
      "spec.affinity.podAntiAffinityType",
      spec.affinity?.podAntiAffinityType,
      "pod anti-affinity type must be 'preferred' (default if empty) or 'required'",
    ),
  ),
  ...(spec.affinity?.tolerations ?? []).flatMap((toleration, i) =>
    checkToleration(`spec.affinity.toleration[${i}]`, toleration),
  ),
];

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

function checkToleration(path: string, toleration: Toleration): FieldIssue[] {
  const { key = "", operator = "", effect = "", tolerationSeconds } = toleration;
  return [
    ...(key === "" ? [] : checkLabelName(key).map((message) => invalid(`${path}.key`, key, message))),
    ...when(
      key === "" && operator !== "Exists",
      invalid(
        `${path}.operator`,
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    ),
    ...when(
      tolerationSeconds !== undefined && effect !== "NoExecute",
      invalid(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"),
    ),
    ...checkOperator(path, toleration),
    ...when(effect !== "" && !effects.includes(effect), notSupported(`${path}.effect`, effect, effects)),
  ];
}

function checkOperator(path: string, { operator = "", value = "" }: Toleration): FieldIssue[] {
  switch (operator) {
    case "":
    case "Equal": {
      const problems = checkLabelValue(value);
      return when(problems.length > 0, invalid(`${path}.operator`, value, problems.join(";")));
    }
    case "Exists":
      return when(value !== "", invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
    default:
      return [notSupported(`${path}.operator`, operator, ["Equal", "Exists"])];
  }
}
