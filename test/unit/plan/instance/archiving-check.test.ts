import { expect, test } from "vitest";
import { isArchivedUpTo, judgeArchiving } from "../../../../src/plan/instance/archiving-check.ts";

test.each<[string, number | undefined, number | undefined, object]>([
  ["nothing ever", undefined, undefined, { kind: "untried" }],
  ["archived", 1, undefined, { kind: "working" }],
  ["archived after a failure", 2, 1, { kind: "working" }],
  ["failed after that", 1, 2, { kind: "failing", reason: "the last attempt, of X, failed" }],
  ["only failures", undefined, 2, { kind: "failing" }],
])("archiving: %s", (_name, lastArchivedMs, lastFailedMs, expected) => {
  const facts = { lastArchivedWal: "", lastFailedWal: "X", lastArchivedMs, lastFailedMs };
  expect(judgeArchiving(facts)).toMatchObject(expected);
});

const needed = "0000000200000001000000FF";
test.each<[string, string, boolean]>([
  ["nothing", "", false],
  ["the one before", "0000000200000001000000FE", false],
  ["the very one", needed, true],
  ["a later one, in the next log", "000000020000000200000000", true],
  ["of a later timeline", "000000030000000200000000", true],
  ["of an earlier timeline", "000000010000000200000000", false],
  ["a history file", "00000003.history", false],
  ["the label of a backup that began in it", `${needed}.00000028.backup`, true],
  ["the label of one that began before", "0000000200000001000000FE.00000028.backup", false],
  ["a label in a later segment", "000000020000000200000000.00000028.backup", true],
  ["the partial one", `${needed}.partial`, false],
])("archived up to the needed one: %s", (_name, last, expected) => {
  expect(isArchivedUpTo(last, needed)).toBe(expected);
});
