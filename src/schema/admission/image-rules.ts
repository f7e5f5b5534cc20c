import { imageMajor, parseImageReference } from "../../postgres/image-version.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** The operand image and how it is pulled. */
export const checkImage: ClusterRule = ({ spec }) => [
  ...(spec.imageName ? checkImageName(spec.imageName) : []),
  ...when(
    !["", "Always", "Never", "IfNotPresent"].includes(spec.imagePullPolicy ?? ""),
    invalid(
      "spec.imagePullPolicy",
      spec.imagePullPolicy,
      "invalid imagePullPolicy, if defined must be one of 'Always', 'Never' or 'IfNotPresent'",
    ),
  ),
];

function checkImageName(image: string): FieldIssue[] {
  const { tag, digest } = parseImageReference(image);
  const refuse = (message: string) => [invalid("spec.imageName", image, message)];
  if (tag === "latest" || (!tag && !digest))
    return refuse("Can't use 'latest' as image tag as we can't detect upgrades");
  if (!tag) return refuse("Can't use just the image sha as we can't detect upgrades");
  const major = imageMajor(image);
  if (major === undefined) return refuse("invalid version tag");
  return when(
    major < 13,
    invalid("spec.imageName", image, "Unsupported PostgreSQL version. Versions 13 or newer are supported"),
  );
}
