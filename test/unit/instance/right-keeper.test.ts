import { expect, test } from "vitest";
import { RightKeeper } from "../../../src/instance/isolation/right-keeper.ts";
import type { PrimaryLease } from "../../../src/instance/primary-lease.ts";
import { compileLeaseTimings } from "../../../src/plan/instance/lease.ts";
import { type PromiseRequest, planPromise } from "../../../src/plan/instance/promise.ts";
import {
  compileRightTimings,
  type PromiseRound,
  rightAfterRound,
  rightAfterWrite,
  stateOfRight,
} from "../../../src/plan/instance/right-to-write.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

function world(voters: string[]) {
  const clock = createFakeClock();
  const timings = compileLeaseTimings(undefined);
  const rightTimings = compileRightTimings(timings);
  const view = () => ({ me: "c-1", now: clock.monotonicMs(), timings: rightTimings });
  let right: ReturnType<typeof rightAfterRound> = rightAfterWrite({ startedAt: 0, voters, transitions: 1 });
  const facts = { running: true, enforced: true, grants: true, asked: 0 };
  const deadlines: { at: number; ms: number }[] = [];
  const stops: number[] = [];
  const lease = {
    timings,
    rightTimings,
    get right() {
      return right;
    },
    get rightState() {
      return stateOfRight(right, view());
    },
    applyRound: (round: PromiseRound) => {
      const next = rightAfterRound(right, round, view());
      if (next !== right) keeper.follow(next);
      right = next;
    },
    lapse: () => {
      right = undefined;
    },
  } as unknown as PrimaryLease;
  const keeper = new RightKeeper({
    lease,
    clock,
    random: createSeededRandom(1),
    logger: captureLogs().logger,
    podName: "c-1",
    podUid: "u1",
    cluster: "ns/c",
    host: { setDeadline: (ms) => deadlines.push({ at: clock.monotonicMs(), ms }) },
    lifecycle: {
      stop: async (cause) => {
        expect(cause).toBe("leaseLost");
        stops.push(clock.monotonicMs());
        facts.running = false;
      },
    },
    isEnforced: () => facts.enforced,
    isRunning: () => facts.running,
    ask: async (question: PromiseRequest, signal) => {
      facts.asked += 1;
      if (!facts.grants)
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const voter = { cluster: "ns/c", me: question.voter, record: undefined, claiming: false, isHolder: false };
      return planPromise({ ...voter, grant: undefined }, question);
    },
    wake: () => undefined,
  });
  const stop = new AbortController();
  const running = keeper.run(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { clock, facts, deadlines, stops, keeper, lease, end };
}

test("promises keep a right that can't be renewed, and move the launcher's deadline", async () => {
  const { clock, stops, deadlines, lease, end } = world(["c-1", "c-2", "c-3"]);
  await clock.advance(60_000);
  expect(stops).toEqual([]);
  expect(lease.rightState.kind).toBe("good");
  expect(deadlines.length).toBeGreaterThan(15);
  for (const { ms } of deadlines) expect(ms).toBeGreaterThan(9_000);
  await end();
});

test("without answers PostgreSQL is stopped after 7 s, and the deadline goes only when it is down", async () => {
  const { clock, facts, stops, deadlines, lease, end } = world(["c-1", "c-2"]);
  facts.grants = false;
  await clock.advance(12_000);
  expect(stops).toEqual([7_000]);
  expect(facts.asked).toBeGreaterThanOrEqual(3);
  expect(deadlines).toEqual([{ at: 7_000, ms: 0 }]);
  expect(lease.right).toBeUndefined();
  await end();
});

test("a user who wants no isolated primary stopped gets neither stop nor deadline", async () => {
  const { clock, facts, stops, keeper, lease, deadlines, end } = world(["c-1", "c-2"]);
  facts.grants = facts.enforced = false;
  keeper.follow(lease.right);
  await clock.advance(60_000);
  expect([stops, deadlines]).toEqual([[], [{ at: 0, ms: 0 }]]);
  await end();
});

test("a cluster of one asks nobody and never ends", async () => {
  const { clock, facts, stops, end } = world(["c-1"]);
  await clock.advance(600_000);
  expect([facts.asked, stops]).toEqual([0, []]);
  await end();
});
