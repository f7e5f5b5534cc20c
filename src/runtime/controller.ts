import type { Clock } from "../ports/clock.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { Runnable } from "./runnable.ts";
import type { WorkQueue } from "./work-queue.ts";

/** What a successful pass asks for. */
export interface ReconcileResult {
  /** Another pass after this delay, whatever happens; absent = only when something changes. */
  requeueAfterMs?: number;
}

/** Thrown by a pass that no repetition can help; the next change of the object starts a new one. */
export class TerminalError extends Error {
  override readonly name = "TerminalError";
}

/** Facts about one pass. */
export interface ReconcileContext {
  /** Carries the controller's name, the key and the id of the pass. */
  logger: Logger;
  reconcileId: string;
}

export type ReconcileOutcome = "success" | "requeue_after" | "error" | "terminal_error";

export interface ControllerMetrics {
  reconciled(outcome: ReconcileOutcome, ms: number): void;
  /** A pass ended by a fault of the program; told besides its outcome. */
  panicked(): void;
  active(workers: number): void;
}

export interface ControllerOptions {
  name: string;
  queue: WorkQueue;
  reconcile(
    key: string,
    signal: AbortSignal,
    context: ReconcileContext,
    // biome-ignore lint/suspicious/noConfusingVoidType: a pass that wants nothing more simply ends.
  ): Promise<ReconcileResult | undefined | void>;
  logger: Logger;
  clock: Clock;
  /** Passes side by side, each on another key. @default 1 */
  concurrency?: number;
  /** After this time in one pass a warning is logged. @default 60000 */
  slowMs?: number;
  metrics?: ControllerMetrics;
}

/** Workers that take keys from the queue and bring the world nearer to what the object wants. */
export function createController(options: ControllerOptions): Runnable {
  return {
    name: options.name,
    async run(signal) {
      const logger = options.logger.child({ controller: options.name });
      const state = { active: 0, passes: 0, ending: new Set<string>() };
      const workers = Array.from({ length: options.concurrency ?? 1 }, () => work(options, logger, state, signal));
      await Promise.all(workers);
      options.queue.close();
    },
  };
}

interface WorkerState {
  active: number;
  passes: number;
  /** Keys in namespaces that are being deleted; told once. */
  readonly ending: Set<string>;
}

async function work(options: ControllerOptions, logger: Logger, state: WorkerState, signal: AbortSignal) {
  for (;;) {
    const key = await options.queue.take(signal);
    if (key === undefined) return;
    options.metrics?.active(++state.active);
    try {
      await pass(options, logger, key, state, signal);
    } finally {
      options.metrics?.active(--state.active);
      options.queue.done(key);
    }
  }
}

async function pass(options: ControllerOptions, parent: Logger, key: string, state: WorkerState, signal: AbortSignal) {
  const { queue, clock } = options;
  const reconcileId = `${options.name}-${++state.passes}`;
  const logger = parent.child({ ...keyFields(key), reconcileID: reconcileId });
  const started = clock.monotonicMs();
  const finished = new AbortController();
  warnWhenSlow(options, logger, finished.signal);
  const result = await settle(() => options.reconcile(key, signal, { logger, reconcileId }));
  finished.abort();
  const outcome = classify(result);
  options.metrics?.reconciled(outcome, clock.monotonicMs() - started);
  if (result.failed && isProgramFault(result.error)) options.metrics?.panicked();
  if (!result.failed) state.ending.delete(key);
  switch (outcome) {
    case "success":
      queue.forget(key);
      if (result.failed) tellEnding(state, key, logger);
      return;
    case "requeue_after":
      queue.forget(key);
      queue.add(key, { delayMs: result.value?.requeueAfterMs ?? 0 });
      return;
    case "terminal_error":
      queue.forget(key);
      logger.error("Reconciliation failed and will not be repeated until something changes", { error: result.error });
      return;
    case "error": {
      if (signal.aborted) return;
      const retryInMs = queue.addRateLimited(key);
      if (isKubeError(result.error, "conflict")) {
        // Somebody else wrote first: normal under optimistic locking, the next pass sees the new state.
        logger.debug("Object was changed meanwhile, reconciling again", { error: result.error, retryInMs });
      } else {
        logger.error("Reconciliation failed", { error: result.error, retryInMs });
      }
      return;
    }
    default:
      outcome satisfies never;
  }
}

type Settled = { value?: ReconcileResult | undefined; error?: unknown; failed: boolean };

async function settle(operation: () => ReturnType<ControllerOptions["reconcile"]>): Promise<Settled> {
  try {
    return { value: (await operation()) ?? undefined, failed: false };
  } catch (error) {
    return { error, failed: true };
  }
}

/** What remains in a namespace goes by itself; each removal starts another pass, which has nothing new to say. */
function tellEnding({ ending }: WorkerState, key: string, logger: Logger): void {
  if (ending.has(key)) return;
  ending.add(key);
  logger.info("The namespace is being deleted: waiting until the object is gone");
}

function classify(result: Settled): ReconcileOutcome {
  if (isKubeError(result.error) && result.error.namespaceTerminating) return "success";
  if (result.failed) return result.error instanceof TerminalError ? "terminal_error" : "error";
  return result.value?.requeueAfterMs === undefined ? "success" : "requeue_after";
}

/** Whether only a fault of the program explains an error, as it is with a panic of a Go program. */
function isProgramFault(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}

function warnWhenSlow(options: ControllerOptions, logger: Logger, finished: AbortSignal): void {
  const slowMs = options.slowMs ?? 60_000;
  const warn = () => logger.warning("Reconciliation takes long", { afterMs: slowMs });
  options.clock.sleep(slowMs, finished).then(warn, () => undefined);
}

function keyFields(key: string): Record<string, string> {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
