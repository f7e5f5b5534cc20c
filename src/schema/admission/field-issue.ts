/** How Kubernetes classes what is wrong with a field. */
export type IssueKind = "Invalid" | "Required" | "Forbidden" | "Duplicate" | "NotSupported";

/** One reason to refuse an object. */
export interface FieldIssue {
  /** Field as it is reported, such as `spec.storage.size`. */
  path: string;
  kind: IssueKind;
  message: string;
  /** The value that was refused; shown for all kinds but Required and Forbidden. */
  value?: unknown;
  /** What would have been accepted, for NotSupported. */
  supported?: readonly string[];
}

export function invalid(path: string, value: unknown, message: string): FieldIssue {
  return { path, kind: "Invalid", value, message };
}

export function required(path: string, message: string): FieldIssue {
  return { path, kind: "Required", message };
}

export function forbidden(path: string, message: string): FieldIssue {
  return { path, kind: "Forbidden", message };
}

export function duplicate(path: string, value: unknown): FieldIssue {
  return { path, kind: "Duplicate", value, message: "" };
}

export function notSupported(path: string, value: unknown, supported: readonly string[]): FieldIssue {
  return { path, kind: "NotSupported", value, message: "", supported };
}

/** The issue as a cause in the status of a refusal, which clients read field by field. */
export function fieldCause(issue: FieldIssue): { reason: string; message: string; field: string } {
  const message = formatFieldIssue(issue).slice(`${issue.path}: `.length);
  return { reason: `FieldValue${issue.kind}`, message, field: issue.path };
}

/** The issue as Kubernetes prints it: `spec.storage.size: Invalid value: "x": Size value isn't valid`. */
export function formatFieldIssue(issue: FieldIssue): string {
  const message = issue.message === "" ? "" : `: ${issue.message}`;
  const value = issue.value === undefined ? "null" : JSON.stringify(issue.value);
  switch (issue.kind) {
    case "Required":
      return `${issue.path}: Required value${message}`;
    case "Forbidden":
      return `${issue.path}: Forbidden${message}`;
    case "Invalid":
      return `${issue.path}: Invalid value: ${value}${message}`;
    case "Duplicate":
      return `${issue.path}: Duplicate value: ${value}${message}`;
    case "NotSupported": {
      const supported = (issue.supported ?? []).map((word) => JSON.stringify(word)).join(", ");
      return `${issue.path}: Unsupported value: ${value}: supported values: ${supported}`;
    }
  }
}

/** The refusal of a whole object as Kubernetes words it; `kind` is qualified by a group, such as `Cluster.postgresql.cnpg.io`. */
export function formatRefusal(kind: string, name: string, issues: readonly FieldIssue[]): string {
  const texts = [...new Set(issues.map(formatFieldIssue))];
  return `${kind} ${JSON.stringify(name)} is invalid: ${texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`}`;
}
