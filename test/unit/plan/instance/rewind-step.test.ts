import { describe, expect, test } from "vitest";
import {
  formatRewindRecord,
  parseRewindRecord,
  planRewindStep,
  rewindAttempts,
} from "../../../../src/plan/instance/rewind.ts";

describe("the record of a rewind", () => {
  test.each([
    { attempts: 0, swapping: true },
    { attempts: 2, swapping: false },
  ])("is read as it was written: %o", (record) => {
    expect(parseRewindRecord(formatRewindRecord(record))).toEqual(record);
  });

  test.each(["", "garbage\n", "attempts=\n"])("that can't be read still tells of an attempt: %j", (text) => {
    expect(parseRewindRecord(text)).toEqual({ attempts: 1, swapping: false });
  });
});

describe("planRewindStep", () => {
  const failed = { attempts: rewindAttempts, policy: "clone", tablespaces: false };

  test("tries again until the attempts are used up", () => {
    for (let attempts = 0; attempts < rewindAttempts; attempts += 1) {
      expect(planRewindStep({ ...failed, attempts })).toEqual({ kind: "rewind" });
    }
    expect(planRewindStep(failed)).toEqual({ kind: "clone", reason: "pg_rewind has failed 3 times" });
  });

  test.each([
    ["the folder is to be kept", { policy: "keep" }, 'cnpg-ts.dev/failedRewind is "keep"'],
    ["a policy that is not known", { policy: "Clone" }, 'cnpg-ts.dev/failedRewind is "Clone"'],
    ["there are tablespaces", { tablespaces: true }, "tablespaces is not cloned in place"],
  ])("leaves it to a person: %s", (_name, change, reason) => {
    const step = planRewindStep({ ...failed, ...change });
    expect(step).toMatchObject({ kind: "giveUp", reason: expect.stringContaining(reason) });
    expect(step).toMatchObject({ reason: expect.stringContaining("alpha.cnpg.io/unrecoverable=true") });
  });
});
