// Beside program-metrics.ts the only file of the kit that imports prom-client, so that programs without metrics do not pay
// for it.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { ControllerMetrics } from "./controller.ts";
import { type ProgramMetrics, programMetrics } from "./program-metrics.ts";
import type { WorkQueueMetrics } from "./work-queue.ts";

export interface MetricsOptions {
  /** Process and event loop metrics; they cost a garbage collection observer. @default false */
  processMetrics?: boolean;
}

/** A program's metrics and the text that `/metrics` answers. */
export interface Metrics extends ProgramMetrics {
  readonly registry: Registry;
  readonly contentType: string;
  render(): Promise<string>;
  /** Observer of one work queue, with controller-runtime's metric names. */
  forQueue(name: string): WorkQueueMetrics;
  /** Observer of one controller, with controller-runtime's metric names. */
  forController(name: string, concurrency: number): ControllerMetrics;
}

/** Creates metrics with a registry of their own. */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics) collectDefaultMetrics({ register: registry });
  const forQueue = queueMetrics(registry);
  const forController = controllerMetrics(registry);
  return {
    registry,
    contentType: registry.contentType,
    render: () => registry.metrics(),
    forQueue,
    forController,
    ...programMetrics(registry),
  };
}

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

function queueMetrics(registry: Registry): Metrics["forQueue"] {
  const registers = [registry];
  const labelNames = ["name", "controller"] as const;
  const depth = new Gauge({ name: "workqueue_depth", help: "Keys that wait to be worked on", labelNames, registers });
  const adds = new Counter({ name: "workqueue_adds_total", help: "Keys added to the queue", labelNames, registers });
  const retries = new Counter({
    name: "workqueue_retries_total",
    help: "Keys added again after an error",
    labelNames,
    registers,
  });
  const waited = new Histogram({
    name: "workqueue_queue_duration_seconds",
    help: "Time a due key waited for a worker",
    labelNames,
    registers,
    buckets: secondsBuckets,
  });
  const worked = new Histogram({
    name: "workqueue_work_duration_seconds",
    help: "Time a worker spent on a key",
    labelNames,
    registers,
    buckets: secondsBuckets,
  });
  const agesOf = workInProgress(registers);
  // Newer releases of controller-runtime name the controller besides the queue; both are called the same.
  return (name) => {
    const labels = { name, controller: name };
    depth.set(labels, 0);
    adds.inc(labels, 0);
    retries.inc(labels, 0);
    return {
      depth: (count) => depth.set(labels, count),
      added: () => adds.inc(labels),
      retried: () => retries.inc(labels),
      waited: (ms) => waited.observe(labels, ms / 1000),
      worked: (ms) => worked.observe(labels, ms / 1000),
      working: (ages) => void agesOf.set(name, ages),
    };
  };
}

/** Tells of keys that are being worked on; only known at the moment that metrics are read. */
function workInProgress(registers: Registry[]): Map<string, () => readonly number[]> {
  const agesOf = new Map<string, () => readonly number[]>();
  const tell = (name: string, help: string, combine: (ages: readonly number[]) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["name", "controller"],
      registers,
      collect() {
        for (const [queue, ages] of agesOf) this.set({ name: queue, controller: queue }, combine(ages()) / 1000);
      },
    });
  tell("workqueue_unfinished_work_seconds", "Time that keys under way have taken so far, added up", (ages) =>
    ages.reduce((sum, age) => sum + age, 0),
  );
  tell("workqueue_longest_running_processor_seconds", "Time that the longest key under way has taken so far", (ages) =>
    Math.max(0, ...ages),
  );
  return agesOf;
}

function controllerMetrics(registry: Registry): Metrics["forController"] {
  const registers = [registry];
  const labelNames = ["controller"] as const;
  const total = new Counter({
    name: "controller_runtime_reconcile_total",
    help: "Passes by controller and result",
    labelNames: ["controller", "result"],
    registers,
  });
  const errors = new Counter({
    name: "controller_runtime_reconcile_errors_total",
    help: "Failed passes by controller",
    labelNames,
    registers,
  });
  const terminal = new Counter({
    name: "controller_runtime_terminal_reconcile_errors_total",
    help: "Failed passes that no repetition can help, by controller",
    labelNames,
    registers,
  });
  const panics = new Counter({
    name: "controller_runtime_reconcile_panics_total",
    help: "Passes that ended by a fault of the program, by controller",
    labelNames,
    registers,
  });
  const seconds = new Histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "Duration of a pass",
    labelNames,
    registers,
    buckets: secondsBuckets,
  });
  const workers = new Gauge({
    name: "controller_runtime_active_workers",
    help: "Passes under way",
    labelNames,
    registers,
  });
  const most = new Gauge({
    name: "controller_runtime_max_concurrent_reconciles",
    help: "Most passes side by side",
    labelNames,
    registers,
  });
  return (controller, concurrency) => {
    most.set({ controller }, concurrency);
    workers.set({ controller }, 0);
    // Alerts look at increases: a series must be there before its first event.
    for (const result of ["success", "requeue", "requeue_after", "error"]) total.inc({ controller, result }, 0);
    errors.inc({ controller }, 0);
    terminal.inc({ controller }, 0);
    panics.inc({ controller }, 0);
    return {
      active: (count) => workers.set({ controller }, count),
      reconciled(result, ms) {
        total.inc({ controller, result: result === "terminal_error" ? "error" : result });
        if (result === "error" || result === "terminal_error") errors.inc({ controller });
        if (result === "terminal_error") terminal.inc({ controller });
        seconds.observe({ controller }, ms / 1000);
      },
      panicked: () => panics.inc({ controller }),
    };
  };
}
