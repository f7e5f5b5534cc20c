import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { checkCredentials } from "./backup-rules.ts";
import type { FieldIssue } from "./field-issue.ts";

/** Checks an ObjectStore by the rules that the in-tree object store of a Cluster has; its own definition lacks them. */
export function validateObjectStore(store: ObjectStore): FieldIssue[] {
  return checkCredentials("spec.configuration", store.spec.configuration);
}
