import { expect, test } from "vitest";
import { type LeftSlotsView, type LogicalSlot, planLeftSlots } from "../../../../src/plan/instance/left-slots.ts";

function slot(name: string, change: Partial<LogicalSlot> = {}): LogicalSlot {
  return { name, active: false, failover: false, synced: false, ...change };
}

const view: LeftSlotsView = {
  slots: [],
  major: 15,
  serverCopies: false,
  preloaded: "",
  isExcluded: (name) => name.startsWith("keep"),
};
const failover = slot("f", { failover: true });

test.each<{ about: string; change: Partial<LeftSlotsView>; dropped: string[] }>([
  { about: "a standby that can't decode has no use for any", change: { slots: [slot("a")] }, dropped: ["a"] },
  { about: "not one in use", change: { slots: [slot("a", { active: true })] }, dropped: [] },
  { about: "not one that the user excludes", change: { slots: [slot("keep_a"), slot("b")] }, dropped: ["b"] },
  {
    about: "not beside a library that copies them",
    change: { slots: [slot("a")], preloaded: "pg_stat_statements, pg_failover_slots" },
    dropped: [],
  },
  { about: "a like-named library copies none", change: { slots: [slot("a")], preloaded: "my_bdr" }, dropped: ["a"] },
  { about: "where a standby may have slots of its own", change: { major: 16, slots: [slot("a")] }, dropped: [] },
  {
    about: "what keeps the server from copying",
    change: {
      major: 17,
      serverCopies: true,
      slots: [failover, slot("a"), slot("c", { failover: true, synced: true })],
    },
    dropped: ["f"],
  },
  { about: "where the server copies nothing", change: { major: 17, slots: [failover] }, dropped: [] },
])("logical slots of a former primary: $about", ({ change, dropped }) => {
  expect(planLeftSlots({ ...view, ...change }).map(({ name }) => name)).toEqual(dropped);
});
