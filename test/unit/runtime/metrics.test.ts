import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/runtime/metrics.ts";
import { createReadiness } from "../../../src/runtime/readiness.ts";

describe("metrics", () => {
  it("renders queue and controller figures under controller-runtime's names", async () => {
    const metrics = createMetrics();
    const queue = metrics.forQueue("cluster");
    queue.added();
    queue.depth(3);
    queue.retried();
    queue.waited(20);
    queue.worked(2000);
    const controller = metrics.forController("cluster", 10);
    controller.active(1);
    controller.reconciled("success", 30);
    controller.reconciled("terminal_error", 30);
    const text = await metrics.render();
    for (const line of [
      'workqueue_depth{name="cluster"} 3',
      'workqueue_adds_total{name="cluster"} 1',
      'workqueue_retries_total{name="cluster"} 1',
      'workqueue_queue_duration_seconds_bucket{le="0.025",name="cluster"} 1',
      'workqueue_work_duration_seconds_sum{name="cluster"} 2',
      'controller_runtime_reconcile_total{controller="cluster",result="success"} 1',
      'controller_runtime_reconcile_total{controller="cluster",result="error"} 1',
      'controller_runtime_reconcile_errors_total{controller="cluster"} 1',
      'controller_runtime_max_concurrent_reconciles{controller="cluster"} 10',
    ]) {
      expect(text).toContain(line);
    }
  });

  it("shares nothing between two registries", async () => {
    createMetrics().forQueue("a").added();
    expect(await createMetrics().render()).not.toContain('name="a"');
  });
});

describe("readiness", () => {
  it("is ready when no check gives a reason against it", () => {
    const readiness = createReadiness();
    expect(readiness.evaluate()).toEqual({ ready: true, failing: {} });
    let reason: string | null = "not synced";
    readiness.add("stores", () => reason);
    expect(readiness.evaluate()).toEqual({ ready: false, failing: { stores: "not synced" } });
    reason = null;
    expect(readiness.evaluate().ready).toBe(true);
  });
});
