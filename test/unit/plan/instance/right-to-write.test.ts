import { describe, expect, test } from "vitest";
import { compileLeaseTimings } from "../../../../src/plan/instance/lease.ts";
import {
  adoptedRight,
  compileRightTimings,
  deadlineOfRight,
  isAlone,
  rightAfterRound,
  rightAfterWrite,
  rightWhileWriting,
  stateOfRight,
  votersToAsk,
  wantsRound,
} from "../../../../src/plan/instance/right-to-write.ts";

const timings = compileRightTimings(compileLeaseTimings(undefined));
const me = "c-1";
const at = (now: number) => ({ me, now, timings });
const right = rightAfterWrite({ startedAt: 1_000, voters: ["c-1", "c-2", "c-3"], transitions: 4 });
const round = (startedAt: number, grantedBy: string[], transitions = 4) => ({ startedAt, grantedBy, transitions });

test("the default times: stop at 7 s, kill at 9.5 s, over at 10 s, questions from 2.5 s on", () => {
  expect(timings).toEqual({ rightMs: 10_000, stopMs: 7_000, killMs: 9_500, roundAfterMs: 2_500, roundLimitMs: 1_500 });
});

test.each([
  [1_000, "good"],
  [7_999, "good"],
  [8_000, "ending"],
  [10_999, "ending"],
  [11_000, "none"],
])("at %i the right that counts from 1000 is %s", (now, kind) => {
  expect(stateOfRight(right, at(now)).kind).toBe(kind);
});

test("the launcher's deadline moves with the right and is never taken away by being late", () => {
  expect(deadlineOfRight(right, at(1_000))).toBe(9_500);
  expect(deadlineOfRight(right, at(60_000))).toBe(1);
  expect(deadlineOfRight(undefined, at(0))).toBeUndefined();
});

describe("alone", () => {
  const alone = rightAfterWrite({ startedAt: 0, voters: [me], transitions: 1 });

  test("the right does not end and has no deadline", () => {
    expect(isAlone(alone, me)).toBe(true);
    expect(stateOfRight(alone, at(1e9))).toEqual({ kind: "good", leftMs: Number.POSITIVE_INFINITY });
    expect(deadlineOfRight(alone, at(1e9))).toBeUndefined();
    expect(wantsRound(alone, at(1e9))).toBe(false);
  });

  test("a write that lists another one counts from the moment it is sent, whatever becomes of it", () => {
    const during = rightWhileWriting(alone, { me, startedAt: 500_000, voters: [me, "c-2"] });
    expect(votersToAsk(during ?? alone, me)).toEqual(["c-2"]);
    expect(stateOfRight(during, at(500_000)).kind).toBe("good");
    expect(stateOfRight(during, at(510_000)).kind).toBe("none");
    expect(deadlineOfRight(during, at(500_000))).toBe(9_500);
  });
});

describe("a round", () => {
  test("makes the right longer, from its start on", () => {
    expect(rightAfterRound(right, round(5_000, ["c-2", "c-3"]), at(6_000))?.basis).toBe(5_000);
  });

  test.each([
    ["one voter did not grant", round(5_000, ["c-2"]), 6_000],
    ["nobody granted", round(5_000, []), 6_000],
    ["it asked about an older record", round(5_000, ["c-2", "c-3"], 3), 6_000],
    ["the right had lapsed when it ended", round(10_900, ["c-2", "c-3"]), 11_100],
    ["the right had lapsed when it began", round(12_000, ["c-2", "c-3"]), 12_100],
  ])("changes nothing when %s", (_, given, now) => {
    expect(rightAfterRound(right, given, at(now))).toEqual(right);
  });

  test("asks also those whom a write of unknown outcome lists, until a later write succeeds", () => {
    const during = rightWhileWriting(right, { me, startedAt: 4_000, voters: ["c-1", "c-2", "c-3", "c-4"] });
    expect(during?.basis).toBe(1_000);
    expect(rightAfterRound(during, round(5_000, ["c-2", "c-3"]), at(6_000))?.basis).toBe(1_000);
    expect(rightAfterRound(during, round(5_000, ["c-2", "c-3", "c-4"]), at(6_000))?.basis).toBe(5_000);
    const removed = rightWhileWriting(right, { me, startedAt: 4_000, voters: ["c-1", "c-2"] });
    expect(removed && votersToAsk(removed, me)).toEqual(["c-2", "c-3"]);
    const written = rightAfterWrite({ startedAt: 7_000, voters: ["c-1", "c-2"], transitions: 4 });
    expect(votersToAsk(written, me)).toEqual(["c-2"]);
  });

  test("is wanted while a renewal is overdue and the right still held", () => {
    expect([1_000, 3_499, 3_500, 8_500, 11_000].map((now) => wantsRound(right, at(now)))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ]);
  });
});

test("an adopted right is what the launcher's deadline leaves of it, and no round makes it longer", () => {
  const adopted = adoptedRight({ me, deadlineMs: 4_000, now: 100_000, timings });
  expect(deadlineOfRight(adopted, at(100_000))).toBe(4_000);
  expect(stateOfRight(adopted, at(101_400)).kind).toBe("good");
  expect(stateOfRight(adopted, at(101_500)).kind).toBe("ending");
  expect(wantsRound(adopted, at(101_000))).toBe(false);
  expect(rightAfterRound(adopted, round(100_500, [], -1), at(101_000))).toEqual(adopted);
});

test("an adopted right whose ground is remembered is made longer by everybody on it, and by no fewer", () => {
  const ground = { transitions: 4, voters: [me, "c-2"], maybeVoters: ["c-3"] };
  const adopted = adoptedRight({ me, deadlineMs: 6_000, now: 100_000, timings, ground });
  expect(deadlineOfRight(adopted, at(100_000))).toBe(6_000);
  expect(votersToAsk(adopted, me)).toEqual(["c-2", "c-3"]);
  expect(wantsRound(adopted, at(100_000))).toBe(true);
  expect(rightAfterRound(adopted, round(100_500, ["c-2"], 4), at(101_000))).toEqual(adopted);
  expect(rightAfterRound(adopted, round(100_500, ["c-2", "c-3"], 3), at(101_000))).toEqual(adopted);
  const longer = rightAfterRound(adopted, round(100_500, ["c-2", "c-3"], 4), at(101_000));
  expect(longer).toEqual({ ...ground, basis: 100_500 });
});

test("an adopted right without a deadline is that of a cluster of one, until a write lists another one", () => {
  const adopted = adoptedRight({ me, deadlineMs: undefined, now: 100_000, timings });
  expect(deadlineOfRight(adopted, at(900_000))).toBeUndefined();
  expect(stateOfRight(adopted, at(900_000)).kind).toBe("good");
  const during = rightWhileWriting(adopted, { me, startedAt: 900_000, voters: [me, "c-2"] });
  expect(deadlineOfRight(during, at(900_000))).toBe(timings.killMs);
});

test("no right: nothing to stop, nothing to ask, nothing to make longer", () => {
  expect(stateOfRight(undefined, at(0))).toEqual({ kind: "none" });
  expect(wantsRound(undefined, at(0))).toBe(false);
  expect(rightAfterRound(undefined, round(0, ["c-2"]), at(1))).toBeUndefined();
  expect(rightWhileWriting(undefined, { me, startedAt: 0, voters: [me] })).toBeUndefined();
});
