import type { Phase } from "../../api/phases.ts";
import { type Pass, recordEvent, setPhase } from "./pass.ts";

/** Sets a phase whose reason names what keeps pods from starting; a new reason is also told as an event. */
export function reportProblems(
  pass: Pass,
  phase: Phase,
  text: string,
  problems: readonly { reason: string; message: string }[],
): void {
  const detail = [...new Set(problems.map((it) => it.message))].join("; ");
  const reason = detail ? `${text}${text.endsWith(".") ? "" : ":"} ${detail}` : text;
  if (detail && pass.cluster.status?.phaseReason !== reason)
    recordEvent(pass, "Warning", "InstanceCannotStart", detail);
  setPhase(pass, phase, reason);
}
