/** What an issue is about. */
export type SchemaRule =
  | "unknownField"
  | "required"
  | "type"
  | "enum"
  | "pattern"
  | "format"
  | "minLength"
  | "maxLength"
  | "minimum"
  | "maximum"
  | "minItems"
  | "maxItems"
  | "duplicate"
  | "cel";

/** One reason why the API server would refuse an object, or drop a part of it. */
export interface SchemaIssue {
  /** Field, such as `spec.storage.size`; empty for the object itself. */
  readonly path: string;
  readonly rule: SchemaRule;
  readonly message: string;
}

/** Takes an issue that was found. */
export type Report = (issue: SchemaIssue) => void;
