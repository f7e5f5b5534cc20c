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
    queue.working(() => [1_000, 3_500]);
    const controller = metrics.forController("cluster", 10);
    controller.active(1);
    controller.reconciled("success", 30);
    controller.reconciled("terminal_error", 30);
    controller.panicked();
    const text = await metrics.render();
    for (const line of [
      'workqueue_depth{name="cluster",controller="cluster"} 3',
      'workqueue_adds_total{name="cluster",controller="cluster"} 1',
      'workqueue_retries_total{name="cluster",controller="cluster"} 1',
      'workqueue_queue_duration_seconds_bucket{le="0.025",name="cluster",controller="cluster"} 1',
      'workqueue_work_duration_seconds_sum{name="cluster",controller="cluster"} 2',
      'controller_runtime_reconcile_total{controller="cluster",result="success"} 1',
      'controller_runtime_reconcile_total{controller="cluster",result="error"} 1',
      'controller_runtime_reconcile_errors_total{controller="cluster"} 1',
      'workqueue_unfinished_work_seconds{name="cluster",controller="cluster"} 4.5',
      'workqueue_longest_running_processor_seconds{name="cluster",controller="cluster"} 3.5',
      'controller_runtime_reconcile_total{controller="cluster",result="requeue_after"} 0',
      'controller_runtime_terminal_reconcile_errors_total{controller="cluster"} 1',
      'controller_runtime_reconcile_panics_total{controller="cluster"} 1',
      'controller_runtime_max_concurrent_reconciles{controller="cluster"} 10',
    ]) {
      expect(text).toContain(line);
    }
  });

  it("has series of the queue and the controller before anything happens", async () => {
    const metrics = createMetrics();
    metrics.forQueue("backup").working(() => []);
    metrics.forController("backup", 1);
    const text = await metrics.render();
    for (const line of [
      'workqueue_adds_total{name="backup",controller="backup"} 0',
      'workqueue_unfinished_work_seconds{name="backup",controller="backup"} 0',
      'workqueue_longest_running_processor_seconds{name="backup",controller="backup"} 0',
      'controller_runtime_reconcile_errors_total{controller="backup"} 0',
      'controller_runtime_reconcile_panics_total{controller="backup"} 0',
    ]) {
      expect(text).toContain(line);
    }
  });

  it("tells of requests, leadership, certificates and webhooks", async () => {
    const metrics = createMetrics();
    let total = 2;
    metrics.forRequests(() => [{ method: "GET", host: "10.0.0.1:443", code: "200", total }]);
    const lead = metrics.forLeadership("the-lease");
    const certificates = metrics.forCertificates();
    const webhooks = metrics.forWebhooks(["/validate"]);
    const before = await metrics.render();
    for (const line of [
      'rest_client_requests_total{method="GET",host="10.0.0.1:443",code="200"} 2',
      'leader_election_master_status{name="the-lease"} 0',
      "certwatcher_read_certificate_total 0",
      'controller_runtime_webhook_requests_in_flight{webhook="/validate"} 0',
    ]) {
      expect(before).toContain(line);
    }
    total = 5;
    lead(true);
    certificates.read("success");
    certificates.read("error");
    const ended = webhooks.began("/validate");
    expect(await metrics.render()).toContain('controller_runtime_webhook_requests_in_flight{webhook="/validate"} 1');
    ended(200, 250);
    const after = await metrics.render();
    for (const line of [
      'rest_client_requests_total{method="GET",host="10.0.0.1:443",code="200"} 5',
      'leader_election_master_status{name="the-lease"} 1',
      "certwatcher_read_certificate_total 2",
      "certwatcher_read_certificate_errors_total 1",
      'controller_runtime_webhook_requests_total{webhook="/validate",code="200"} 1',
      'controller_runtime_webhook_requests_in_flight{webhook="/validate"} 0',
      'controller_runtime_webhook_latency_seconds_sum{webhook="/validate"} 0.25',
    ]) {
      expect(after).toContain(line);
    }
    lead(false);
    expect(await metrics.render()).toContain('leader_election_master_status{name="the-lease"} 0');
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
