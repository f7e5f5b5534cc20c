import { phases } from "../../api/phases.ts";
import { planAccess } from "./access.ts";
import { planBudgets } from "./budgets.ts";
import { planClusterCertificates } from "./certificates.ts";
import { planCredentials } from "./credentials.ts";
import { planMonitoring } from "./monitoring.ts";
import { flushStatus, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";
import { planPrimaryLease, planQuorumObject } from "./primary-lease.ts";
import { planServices } from "./services.ts";

/** Something that only a person can put right, with the event that tells it. */
export interface Problem {
  event: string;
  /** Text of the phase, and of the event unless that has its own. */
  message: string;
  eventMessage?: string;
}

/**
 * Ensures everything around the instances, in the order of the reference (cluster controller §1.5). What one part cannot
 * do does not keep the others from being done; any problem ends the pass with a phase that names it.
 */
export function planAuxiliaryObjects(pass: Pass): Wait | null {
  const problems: Problem[] = [];
  const waits: (Wait | null)[] = [];
  problems.push(...planClusterCertificates(pass));
  problems.push(...planCredentials(pass));
  const services = planServices(pass);
  problems.push(...services.problems);
  waits.push(services.wait);
  planBudgets(pass);
  problems.push(...planAccess(pass));
  planMonitoring(pass);
  planQuorumObject(pass);
  problems.push(...planPrimaryLease(pass));
  if (problems.length === 0) return waits.find((it) => it !== null) ?? null;
  const message = problems.map((it) => it.message).join("; ");
  if (pass.cluster.status?.phaseReason !== message) {
    for (const problem of problems) {
      recordEvent(pass, "Warning", problem.event, problem.eventMessage ?? problem.message);
    }
  }
  setPhase(pass, phases.cannotCreateObjects, message);
  flushStatus(pass, message);
  return { requeueAfterMs: 10_000, because: message };
}
