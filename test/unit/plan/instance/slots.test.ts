import { describe, expect, test } from "vitest";
import {
  planPrimarySlots,
  planStandbySlots,
  type Slot,
  type StandbySlotsView,
  slotCopyPauseMs,
} from "../../../../src/plan/instance/slots.ts";

function slot(name: string, change: Partial<Slot> = {}): Slot {
  return { name, active: false, restartLsn: "0/10", holdsXmin: false, ...change };
}

describe("planPrimarySlots", () => {
  const view = { slots: [], expected: ["_cnpg_c_2", "_cnpg_c_3"], prefix: "_cnpg_", enabled: true };
  const names = (plan: ReturnType<typeof planPrimarySlots>) =>
    plan.actions.map((action) => `${action.kind} ${action.name}`);

  test("creates what is missing", () => {
    expect(names(planPrimarySlots(view))).toEqual(["create _cnpg_c_2", "create _cnpg_c_3"]);
  });
  test("leaves what is right", () => {
    expect(planPrimarySlots({ ...view, slots: [slot("_cnpg_c_2"), slot("_cnpg_c_3")] })).toEqual({
      actions: [],
      retry: false,
    });
  });
  test("drops what nobody needs, but never one in use", () => {
    const slots = [
      slot("_cnpg_c_2"),
      slot("_cnpg_c_3"),
      slot("_cnpg_c_4"),
      slot("_cnpg_c_5", { active: true }),
      slot("mine"),
    ];
    const plan = planPrimarySlots({ ...view, slots });
    expect(names(plan)).toEqual(["drop _cnpg_c_4"]);
    expect(plan.retry).toBe(true);
  });
  test("turned off: drops ours and leaves the user's", () => {
    expect(names(planPrimarySlots({ ...view, enabled: false, slots: [slot("_cnpg_c_2"), slot("mine")] }))).toEqual([
      "drop _cnpg_c_2",
    ]);
  });
});

describe("planStandbySlots", () => {
  const view: StandbySlotsView = {
    local: [],
    primary: [],
    mySlot: "_cnpg_c_2",
    prefix: "_cnpg_",
    enabled: true,
    synchronizeUserSlots: true,
    isExcluded: (name) => name.startsWith("skip"),
  };
  const plan = (change: Partial<StandbySlotsView>) =>
    planStandbySlots({ ...view, ...change }).map((action) => `${action.kind} ${action.name}`);

  test("copies the others' slots and the user's, not its own", () => {
    expect(plan({ primary: [slot("_cnpg_c_2"), slot("_cnpg_c_3"), slot("user")] })).toEqual([
      "create _cnpg_c_3",
      "advance _cnpg_c_3",
      "create user",
      "advance user",
    ]);
  });
  test("passes over HA slots that were never used", () => {
    expect(plan({ primary: [slot("_cnpg_c_3", { restartLsn: null })] })).toEqual([]);
  });
  test("creates an unused user slot without a position", () => {
    expect(planStandbySlots({ ...view, primary: [slot("user", { restartLsn: null })] })).toEqual([
      { kind: "create", name: "user", reserveAt: undefined, reason: "the primary has it" },
    ]);
  });
  test("moves a copy, and not one that is where it should be", () => {
    const primary = [slot("_cnpg_c_3", { restartLsn: "0/20" })];
    expect(plan({ primary, local: [slot("_cnpg_c_3")] })).toEqual(["advance _cnpg_c_3"]);
    expect(plan({ primary, local: [slot("_cnpg_c_3", { restartLsn: "0/20" })] })).toEqual([]);
  });
  test("never moves a copy back", () => {
    const primary = [slot("_cnpg_c_3", { restartLsn: "0/9000000" }), slot("user", { restartLsn: "1/0" })];
    const local = [slot("_cnpg_c_3", { restartLsn: "0/10000000" }), slot("user", { restartLsn: "0/FFFFFFFF" })];
    expect(plan({ primary, local })).toEqual(["advance user"]);
  });
  test("fills a copy that was made before the primary's slot had a position", () => {
    const primary = [slot("user", { restartLsn: "0/20" })];
    expect(plan({ primary, local: [slot("user", { restartLsn: null })] })).toEqual(["advance user"]);
  });
  test("never touches what matches an exclusion", () => {
    expect(plan({ primary: [slot("skip_a")], local: [slot("skip_b")] })).toEqual([]);
  });
  test("drops what the primary lacks, its own, and what holds back vacuum", () => {
    const local = [slot("gone"), slot("_cnpg_c_2"), slot("user", { holdsXmin: true })];
    expect(plan({ local, primary: [slot("user"), slot("_cnpg_c_2")] })).toEqual([
      "drop gone",
      "drop _cnpg_c_2",
      "drop user",
    ]);
  });
  test("never drops an active slot", () => {
    expect(plan({ local: [slot("gone", { active: true })] })).toEqual([]);
  });
  test("user slots are dropped once their copying is off", () => {
    expect(plan({ synchronizeUserSlots: false, local: [slot("user")], primary: [slot("user")] })).toEqual([
      "drop user",
    ]);
  });
  test("each name is dropped once", () => {
    const actions = plan({ local: [slot("_cnpg_c_2", { holdsXmin: true })] });
    expect(actions).toEqual(["drop _cnpg_c_2"]);
  });
});

test.each([
  ["unset", undefined, 30_000],
  ["nothing, which would be no pause at all", 0, 30_000],
  ["below nothing", -1, 30_000],
  ["no number", Number.NaN, 30_000],
  ["a second", 1, 1_000],
  ["the default of the definition", 30, 30_000],
])("the pause between two copies of the slots: %s", (_about, seconds, ms) => {
  expect(slotCopyPauseMs(seconds)).toBe(ms);
});
