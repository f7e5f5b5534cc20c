import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sortInstances } from "../../../../src/plan/cluster/election.ts";
import type { PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aCluster, answered, aPod, aStatus, silent } from "./fixtures.ts";

const cluster = aCluster();
const lsn = fc.constantFrom("0/1", "0/A", "1/0", "nonsense", "", undefined);

/** Instances `c-1` to `c-n` in whatever state. */
const instances = fc
  .array(
    fc.record({
      isSilent: fc.boolean(),
      isPrimary: fc.boolean(),
      receivedLsn: lsn,
      replayLsn: lsn,
      timeLineID: fc.constantFrom(0, 1, 2, undefined),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((states) =>
    states.map(({ isSilent, isPrimary, receivedLsn, replayLsn, timeLineID }, index): PolledInstance => {
      const pod = aPod(cluster, index + 1);
      if (isSilent) return silent(pod);
      const { receivedLsn: _, replayLsn: __, timeLineID: ___, ...status } = aStatus({ isPrimary });
      return answered(pod, {
        ...status,
        ...(receivedLsn === undefined ? {} : { receivedLsn }),
        ...(replayLsn === undefined ? {} : { replayLsn }),
        ...(timeLineID === undefined ? {} : { timeLineID }),
      });
    }),
  );

const names = (sorted: readonly PolledInstance[]) => sorted.map((it) => it.name);

describe("the election order", () => {
  it("is the same whatever order the answers came in", () => {
    fc.assert(
      fc.property(instances, fc.integer(), (given, seed) => {
        const shuffled = [...given].sort((a, b) => hash(a.name, seed) - hash(b.name, seed));
        expect(names(sortInstances(shuffled))).toEqual(names(sortInstances(given)));
      }),
    );
  });

  it("puts silence last, and a primary before every standby", () => {
    fc.assert(
      fc.property(instances, (given) => {
        const sorted = sortInstances(given);
        const ranks = sorted.map((it) => (it.kind === "silent" ? 2 : it.status.isPrimary ? 0 : 1));
        expect(ranks).toEqual([...ranks].sort());
      }),
    );
  });
});

function hash(text: string, seed: number): number {
  let value = seed;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193);
  return value >>> 0;
}
