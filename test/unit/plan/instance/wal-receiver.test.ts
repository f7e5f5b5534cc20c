import { expect, test } from "vitest";
import { planReceiver } from "../../../../src/plan/instance/wal-receiver.ts";

test.each([
  ["a receiver that streams is left alone", true, true, 100, "none"],
  ["one that has just started may still connect", true, false, 0.2, "none"],
  ["one that a server keeps waiting is given up", true, false, 3.5, "terminate"],
  ["where there is none, PostgreSQL is to try now", true, false, undefined, "reload"],
  ["with the same primary as before it may take longer", false, false, 29, "none"],
  ["but not for ever", false, false, 31, "terminate"],
  ["and PostgreSQL tries again by itself", false, false, undefined, "none"],
  ["one that streams from the same primary is left alone", false, true, 10_000, "none"],
])("%s", (_what, primaryChanged, streaming, ageSeconds, remedy) => {
  expect(planReceiver({ primaryChanged, streaming, ageSeconds })).toBe(remedy);
});
