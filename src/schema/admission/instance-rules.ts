import { invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** How many instances there are and how the primary is updated. */
export const checkInstances: ClusterRule = ({ spec }) => {
  const { instances, primaryUpdateStrategy = "unsupervised", minSyncReplicas = 0, maxSyncReplicas = 0 } = spec;
  const strategies = ["", "supervised", "unsupervised"];
  return [
    ...when(
      !strategies.includes(primaryUpdateStrategy),
      invalid(
        "spec.primaryUpdateStrategy",
        primaryUpdateStrategy,
        "primaryUpdateStrategy should be empty, 'supervised' or 'unsupervised'",
      ),
    ),
    ...when(
      primaryUpdateStrategy === "supervised" && instances === 1,
      invalid(
        "spec.primaryUpdateStrategy",
        primaryUpdateStrategy,
        "supervised update strategy is not allowed for clusters with a single instance",
      ),
    ),
    ...when(
      minSyncReplicas < 0,
      invalid("spec.minSyncReplicas", minSyncReplicas, "minSyncReplicas must be a non negative integer"),
    ),
    ...when(
      minSyncReplicas > maxSyncReplicas,
      invalid("spec.minSyncReplicas", minSyncReplicas, "minSyncReplicas cannot be greater than maxSyncReplicas"),
    ),
    ...when(
      maxSyncReplicas < 0,
      invalid("spec.maxSyncReplicas", maxSyncReplicas, "maxSyncReplicas must be a non negative integer"),
    ),
    ...when(
      maxSyncReplicas > 0 && maxSyncReplicas >= instances,
      invalid("spec.maxSyncReplicas", maxSyncReplicas, "maxSyncReplicas must be lower than the number of instances"),
    ),
  ];
};

/** Timing of the primary's Lease. */
export const checkPrimaryLease: ClusterRule = ({ spec }) => {
  if (!spec.primaryLease) return [];
  const { leaseDurationSeconds = 15, renewDeadlineSeconds = 10, retryPeriodSeconds = 2 } = spec.primaryLease;
  return [
    ...when(
      leaseDurationSeconds <= renewDeadlineSeconds,
      invalid(
        "spec.primaryLease.leaseDurationSeconds",
        leaseDurationSeconds,
        "leaseDurationSeconds must be greater than renewDeadlineSeconds",
      ),
    ),
    // 1.2 times, in whole numbers.
    ...when(
      5 * renewDeadlineSeconds <= 6 * retryPeriodSeconds,
      invalid(
        "spec.primaryLease.renewDeadlineSeconds",
        renewDeadlineSeconds,
        "renewDeadlineSeconds must be greater than retryPeriodSeconds multiplied by 1.2",
      ),
    ),
  ];
};

/** The account that instances run under. */
export const checkServiceAccount: ClusterRule = ({ spec }) =>
  when(
    Boolean(spec.serviceAccountName) && spec.serviceAccountTemplate !== undefined,
    invalid(
      "spec.serviceAccountName",
      spec.serviceAccountName,
      "serviceAccountName and serviceAccountTemplate are mutually exclusive",
    ),
  );
