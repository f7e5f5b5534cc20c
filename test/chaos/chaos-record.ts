import type { Verdict } from "./verdict.ts";

/** One run of a fault, as it is kept. */
export interface ChaosRecord extends Verdict {
  readonly fault: string;
  /** `required`: a commit waits for one standby; `none`: asynchronous replication. */
  readonly durability: "none" | "required";
  /** Whether another instance is the primary in the end. */
  readonly moved: boolean;
  /** Day and time of the run, ISO 8601. */
  readonly date: string;
  /** Commit of the programs. */
  readonly commit: string;
  /** From the fault until the cluster was healthy with all instances, in seconds. */
  readonly healthySeconds: number;
  /** One-minute load of the machine when the fault began. */
  readonly load: number;
  /** What else did not go on, or did not come back. @default - nothing */
  readonly broken?: string;
}
