import { planCachedStart } from "../plan/instance/cached-start.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { InstanceContext } from "./instance-context.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Postmaster } from "./postmaster.ts";
import { readRewindRecord } from "./reconcile/rewind-record.ts";

type NoteContext = Pick<InstanceContext, "files" | "paths" | "logger">;

/** Beside the pod's certificates: it must go when they go. */
function notePath({ paths }: NoteContext): string {
  return `${paths.certificates}/.standby-of-pod`;
}

/** Notes that PostgreSQL runs as a standby in this pod, with everything that it needs in place. Never fails. */
export async function keepStandbyNote(context: NoteContext, podUid: string): Promise<void> {
  try {
    if ((await context.files.read(notePath(context))) === podUid) return;
    await context.files.writeAtomic(notePath(context), podUid, 0o600);
  } catch (error) {
    context.logger.warning("This standby could not start again without its API server", { error });
  }
}

/** From here on PostgreSQL starts only by what the Cluster says. Never fails. */
export function dropStandbyNote(context: NoteContext): Promise<void> {
  return context.files
    .remove(notePath(context))
    .catch((error) => context.logger.warning("The note of a running standby could not be removed", { error }));
}

export interface CachedStartDeps {
  context: InstanceContext;
  lifecycle: Pick<Lifecycle, "start" | "terminating" | "busy">;
  postmaster: Pick<Postmaster, "pid" | "waitUntilAccepting">;
  podUid: string;
  /** PostgreSQL is about to run although no pass prepared it. */
  adopted: () => void;
}

/** Starts a stopped standby without the Cluster, where that is safe; `error` is why the Cluster could not be read. */
export async function startWithoutCluster(deps: CachedStartDeps, error: unknown, attempts: number): Promise<void> {
  const { context, lifecycle, postmaster, podUid } = deps;
  const isIdle = () =>
    postmaster.pid === undefined && !lifecycle.busy && !lifecycle.terminating && context.state.cluster === undefined;
  if (!isIdle()) return;
  const decision = planCachedStart({
    unreachable: isKubeError(error, "unavailable"),
    attempts,
    dataRole: await context.data.role(),
    notedPod: await context.files.read(notePath(context)),
    myPod: podUid,
    unfinished: (await readRewindRecord(context)) !== undefined,
  });
  if (decision.kind === "wait") {
    context.logger.info("PostgreSQL waits for the Cluster", { reason: decision.reason });
    return;
  }
  // A start that fails is not tried again before the Cluster is known.
  await dropStandbyNote(context);
  if (!isIdle()) return;
  context.logger.warning("Starting PostgreSQL without the Cluster", { reason: decision.reason });
  deps.adopted();
  if ((await lifecycle.start()) && (await postmaster.waitUntilAccepting())) await keepStandbyNote(context, podUid);
}
