import { describe, expect, it } from "vitest";
import { KubeError } from "../../../src/ports/kube-api.ts";
import {
  type ControllerOptions,
  createController,
  type ReconcileOutcome,
  TerminalError,
} from "../../../src/runtime/controller.ts";
import { createWorkQueue } from "../../../src/runtime/work-queue.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

const noMetrics = { reconciled: () => undefined, active: () => undefined, panicked: () => undefined };

function aController(reconcile: ControllerOptions["reconcile"], extra: Partial<ControllerOptions> = {}) {
  const clock = createFakeClock();
  const logs = captureLogs();
  const queue = createWorkQueue({ name: "test", clock });
  const stop = new AbortController();
  const controller = createController({ name: "cluster", queue, reconcile, logger: logs.logger, clock, ...extra });
  const running = controller.run(stop.signal);
  return { clock, logs, queue, stop, running };
}

describe("controller", () => {
  it("repeats a failed pass with growing delays until it succeeds", async () => {
    const times: number[] = [];
    const setup = aController(async () => {
      times.push(setup.clock.monotonicMs());
      if (times.length < 4) throw new Error("broken");
    });
    setup.queue.add("ns/one");
    await setup.clock.advance(10_000);
    expect(times).toEqual([0, 5, 15, 35]);
    expect(setup.logs.messages("error")).toHaveLength(3);
    expect(setup.logs.records[0]?.fields).toMatchObject({
      controller: "cluster",
      namespace: "ns",
      name: "one",
      retryInMs: 5,
    });
    expect(setup.queue.failures("ns/one")).toBe(0);
    setup.stop.abort();
    await setup.running;
  });

  it("comes back after requeueAfterMs, or earlier when something changes", async () => {
    const times: number[] = [];
    const setup = aController(async () => {
      times.push(setup.clock.monotonicMs());
      return { requeueAfterMs: 1000 };
    });
    setup.queue.add("ns/one");
    await setup.clock.advance(1500);
    setup.queue.add("ns/one");
    await setup.clock.advance(600);
    expect(times).toEqual([0, 1000, 1500]);
    setup.stop.abort();
    await setup.running;
  });

  it("drops a terminal failure, and treats a conflict as normal", async () => {
    let passes = 0;
    const outcomes: ReconcileOutcome[] = [];
    const setup = aController(
      async () => {
        passes++;
        if (passes === 1) throw new KubeError("stale", { kind: "conflict", status: 409 });
        throw new TerminalError("will never work");
      },
      { metrics: { ...noMetrics, reconciled: (outcome) => outcomes.push(outcome) } },
    );
    setup.queue.add("ns/one");
    await setup.clock.advance(60_000);
    expect(passes).toBe(2);
    expect(outcomes).toEqual(["error", "terminal_error"]);
    expect(setup.logs.messages("error")).toEqual([
      "Reconciliation failed and will not be repeated until something changes",
    ]);
    setup.stop.abort();
    await setup.running;
  });

  it.each<[string, unknown, number]>([
    ["a fault of the program", new TypeError("undefined is no function"), 1],
    ["an endless recursion", new RangeError("too deep"), 1],
    ["something thrown that is no error", "text", 1],
    ["a refused request", new KubeError("no", { kind: "forbidden", status: 403 }), 0],
    ["what is wrong with an object", new TerminalError("will never work"), 0],
    ["any other failure", new Error("broken"), 0],
  ])("counts %s as a panic or not", async (_, thrown, expected) => {
    let panics = 0;
    const setup = aController(
      async () => {
        if (setup.clock.monotonicMs() === 0) throw thrown;
      },
      { metrics: { ...noMetrics, panicked: () => panics++ } },
    );
    setup.queue.add("ns/one");
    await setup.clock.advance(1_000);
    expect(panics).toBe(expected);
    setup.stop.abort();
    await setup.running;
  });

  it("waits for the end of an object whose namespace is being deleted, and says so once", async () => {
    const outcomes: ReconcileOutcome[] = [];
    let isEnding = true;
    let passes = 0;
    const setup = aController(
      async () => {
        passes++;
        const fields = { kind: "forbidden", status: 403, namespaceTerminating: true } as const;
        if (isEnding) throw new KubeError("create services ns/one: 403", fields);
      },
      { metrics: { ...noMetrics, reconciled: (outcome) => outcomes.push(outcome) } },
    );
    setup.queue.add("ns/one");
    await setup.clock.advance(600_000);
    expect(passes).toBe(1);
    setup.queue.add("ns/one");
    await setup.clock.advance(1_000);
    expect(setup.logs.messages()).toEqual(["The namespace is being deleted: waiting until the object is gone"]);
    // Gone, and made anew in another namespace of that name, which is deleted as well.
    for (const ending of [false, true]) {
      isEnding = ending;
      setup.queue.add("ns/one");
      await setup.clock.advance(1_000);
    }
    expect(setup.logs.messages()).toHaveLength(2);
    expect(outcomes).toEqual(["success", "success", "success", "success"]);
    setup.stop.abort();
    await setup.running;
  });

  it("works on several keys side by side but on one key only once", async () => {
    let active = 0;
    let most = 0;
    const release: (() => void)[] = [];
    const setup = aController(
      () => {
        most = Math.max(most, ++active);
        return new Promise<void>((resolve) => {
          release.push(() => {
            active--;
            resolve();
          });
        });
      },
      { concurrency: 3 },
    );
    for (const key of ["a", "b", "c", "d", "a"]) setup.queue.add(key);
    await setup.clock.settle();
    setup.queue.add("a");
    await setup.clock.settle();
    expect(most).toBe(3);
    expect(release).toHaveLength(3);
    while (release.length > 0) {
      for (const finish of release.splice(0)) finish();
      await setup.clock.settle();
    }
    expect(active).toBe(0);
    setup.stop.abort();
    await setup.running;
  });

  it("says so when a pass takes long, and ends only after it", async () => {
    let finish: () => void = () => undefined;
    const setup = aController(() => new Promise<void>((resolve) => (finish = resolve)), { slowMs: 1000 });
    setup.queue.add("a");
    await setup.clock.advance(1500);
    expect(setup.logs.messages("warning")).toEqual(["Reconciliation takes long"]);
    let ended = false;
    setup.stop.abort();
    const end = setup.running.then(() => {
      ended = true;
    });
    await setup.clock.settle();
    expect(ended).toBe(false);
    finish();
    await end;
  });

  it("also takes a pass that throws before it returns a promise", async () => {
    const setup = aController(() => {
      throw new TerminalError("at once");
    });
    setup.queue.add("a");
    await setup.clock.settle();
    expect(setup.logs.messages("error")).toHaveLength(1);
    setup.stop.abort();
    await setup.running;
  });
});
