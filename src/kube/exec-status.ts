import type { ExecResult } from "../ports/pod-exec.ts";

/** Channels of `v5.channel.k8s.io`: the first byte of each message. */
export const execChannels = { stdout: 1, stderr: 2, error: 3 } as const;

interface Status {
  status?: string;
  message?: string;
  reason?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

/** How a program ended by the last message of its session; throws when the message does not say that it was run. */
export function readExecStatus(text: string): ExecResult["exitCode"] {
  let status: Status;
  try {
    status = JSON.parse(text) as Status;
  } catch {
    throw new Error(`the container's runtime answered ${JSON.stringify(text.slice(0, 200))}`);
  }
  if (status.status === "Success") return 0;
  const code = status.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  if (status.reason === "NonZeroExitCode" && code !== undefined && /^\d+$/.test(code)) return Number(code);
  throw new Error(status.message ?? `the program was not run: ${status.reason ?? "no reason given"}`);
}
