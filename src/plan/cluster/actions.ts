import type { ObjectMeta } from "../../api/generated/kubernetes.ts";
import type { CertificateAction } from "../../build/certificates.ts";

/** Any object that a plan writes; it tells its own kind. */
export interface PlannedObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** An object as it was when the decision was taken; the write fails if it has been replaced since. */
export interface ObjectRef {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
  /** Set when the decision depends on the object's content, not only on its identity. */
  resourceVersion?: string;
}

/**
 * One step of a plan. `reason` says why, in words that are logged as they are.
 * Steps run in order and the first failure ends the pass, except for those marked best effort.
 */
export type ClusterAction =
  /** Merge patch of the status, on the version that the plan saw or that its last status patch made. */
  | { kind: "patchStatus"; patch: Record<string, unknown>; reason: string }
  /** Merge patch of metadata or spec of the Cluster, on the version that the plan saw. */
  | { kind: "patchCluster"; patch: Record<string, unknown>; reason: string }
  /** `mustOwn`: when the object exists already, it has to be owned by this cluster. */
  | { kind: "create"; object: PlannedObject; mustOwn: boolean; reason: string }
  /** Full update on the object's own resourceVersion. */
  | { kind: "update"; object: PlannedObject; reason: string }
  /** `failureEvent`: reason of a Warning event that tells the user why a best effort failed. */
  | {
      kind: "patch";
      target: ObjectRef;
      patch: Record<string, unknown>;
      bestEffort: boolean;
      failureEvent?: string;
      reason: string;
    }
  | { kind: "delete"; target: ObjectRef; propagation: "Foreground" | "Background"; bestEffort: boolean; reason: string }
  /** A certificate, key included, is made at execution. */
  | { kind: "issueCertificate"; certificate: CertificateAction; reason: string }
  /** The password is drawn at execution. */
  | { kind: "createCredentials"; user: "superuser" | "app"; reason: string }
  | { kind: "event"; type: "Normal" | "Warning"; event: string; message: string; reason: string }
  /** The fenced primary archives the segment in which it stopped; what it archived must have that name. */
  | { kind: "archivePartialWal"; instance: string; wal: string; reason: string }
  /** Takes the operator's one rollout slot, unless somebody else took it since `seenAtMs`; noted on the Cluster. */
  | {
      kind: "takeRolloutSlot";
      instance: string;
      podUid: string;
      seenAtMs: number | undefined;
      reason: string;
    }
  /** Begins to send an instance this operator's manager; what becomes of it is observed later. */
  | { kind: "sendManager"; target: ObjectRef; goArch: string; hash: string; oldHash: string; reason: string }
  /** The instance runs what it was sent. */
  | { kind: "forgetManager"; target: ObjectRef; reason: string };

/** Name of an action for failpoints and logs, for example `createJob` or `patchStatus`. */
export function actionName(action: ClusterAction): string {
  switch (action.kind) {
    case "create":
    case "update":
      return `${action.kind}${action.object.kind}`;
    case "patch":
    case "delete":
      return `${action.kind}${action.target.kind}`;
    default:
      return action.kind;
  }
}

/** Reference to an observed object for a conditional write; `content` also pins its version. */
export function refTo(
  object: { apiVersion: string; kind: string; metadata: ObjectMeta },
  options: { content?: boolean } = {},
): ObjectRef {
  const { namespace, name, uid, resourceVersion } = object.metadata;
  const ref: ObjectRef = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    namespace: namespace ?? "",
    name: name ?? "",
    uid: uid ?? "",
  };
  return options.content && resourceVersion ? { ...ref, resourceVersion } : ref;
}
