import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { ScheduledBackup as ScheduledBackupObject } from "../../src/api/generated/scheduledbackup.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a ScheduledBackup, as the API has it. */
export type ScheduledBackupSpec = ScheduledBackupObject["spec"];

export interface ScheduledBackupProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: ScheduledBackupSpec;
}

/** Backups by schedule; the schedule has six fields, seconds first. */
export class ScheduledBackup extends CustomResource {
  constructor(scope: Construct, id: string, props: ScheduledBackupProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "ScheduledBackup", spec: props.spec });
  }
}
