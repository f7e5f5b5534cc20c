import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Backup as BackupObject } from "../../src/api/generated/backup.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Backup, as the API has it. */
export type BackupSpec = BackupObject["spec"];

export interface BackupProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: BackupSpec;
}

/** One backup, taken when the object is created. */
export class Backup extends CustomResource {
  constructor(scope: Construct, id: string, props: BackupProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Backup", spec: props.spec });
  }
}
