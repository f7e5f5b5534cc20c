import { expect, it } from "vitest";
import { findUpgradeObstacle, type UpgradeSituation } from "../../../../src/plan/instance/upgrade-obstacle.ts";

const state = { restarting: false, rewinding: false, stopping: false };
const quiet: UpgradeSituation = { state, busy: false, backups: 0, deadlineMs: undefined };

it.each<[string, Partial<UpgradeSituation>, string | undefined]>([
  ["a quiet standby", {}, undefined],
  ["a primary that has just renewed its right", { deadlineMs: 9_000 }, undefined],
  ["a primary whose right is getting old", { deadlineMs: 4_999 }, "the right to write has not been renewed just now"],
  ["a start or a stop", { busy: true }, "PostgreSQL is being started or stopped"],
  ["a restart", { state: { ...state, restarting: true } }, "PostgreSQL is being started or stopped"],
  ["a rewind", { state: { ...state, rewinding: true } }, "pg_rewind is running"],
  ["the end", { state: { ...state, stopping: true } }, "the instance is being stopped"],
  ["a backup", { backups: 1 }, "a backup is being taken, which would be lost"],
])("%s", (_name, change, reason) => {
  expect(findUpgradeObstacle({ ...quiet, ...change })).toBe(reason);
});
