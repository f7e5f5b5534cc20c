import { describe, expect, test } from "vitest";
import { planExtensions } from "../../../../src/plan/instance/extensions.ts";
import { planFailoverQuorum } from "../../../../src/plan/instance/failover-quorum.ts";

describe("planFailoverQuorum", () => {
  const loaded = { method: "ANY" as const, number: 1, standbyNames: ["c-2", "c-3", "c-1"] };
  const base = { me: "c-1", settledPrimary: true, active: true, loaded };
  test("the primary is not its own standby", () => {
    expect(planFailoverQuorum(base)).toEqual({
      method: "ANY",
      standbyNames: ["c-2", "c-3"],
      standbyNumber: 1,
      primary: "c-1",
    });
  });
  test("nothing loaded blocks a failover", () => {
    expect(planFailoverQuorum({ ...base, loaded: undefined })).toEqual({});
  });
  test.each([{ settledPrimary: false }, { active: false }])("%o leaves the object alone", (change) => {
    expect(planFailoverQuorum({ ...base, ...change })).toBeUndefined();
  });
});

test("planExtensions makes what is used and drops what is not, and leaves foreign ones", () => {
  const managed = ["pgaudit", "pg_stat_statements"];
  expect(planExtensions({ managed, used: ["pgaudit"], installed: ["pg_stat_statements", "plpgsql"] })).toEqual([
    { kind: "create", name: "pgaudit" },
    { kind: "drop", name: "pg_stat_statements" },
  ]);
  expect(planExtensions({ managed, used: ["pgaudit"], installed: ["pgaudit"] })).toEqual([]);
});
