import { describe, expect, test } from "vitest";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { LocalSql, passLimits, withSession } from "../../../src/instance/local-sql.ts";
import type { SqlTarget } from "../../../src/ports/sql-session.ts";

function world(query: (text: string) => Promise<Record<string, unknown>[]>) {
  const targets: SqlTarget[] = [];
  let closed = 0;
  const context = {
    settings: { postgresPort: 5432 },
    paths: { socketDir: "/run" },
    localSessions: new Set(),
    sql: {
      connect: async (target: SqlTarget) => {
        targets.push(target);
        const close = async () => {
          closed += 1;
        };
        return { query, close };
      },
    },
  } as unknown as InstanceContext;
  return { context, targets, closed: () => closed };
}

describe("LocalSql", () => {
  test("a statement that hangs is left with the signal, and the session with it", async () => {
    let hang = true;
    const { context, targets, closed } = world(async () => (hang ? new Promise(() => undefined) : [{ one: 1 }]));
    const sql = new LocalSql(context, passLimits);
    const pass = new AbortController();
    sql.follow(pass.signal);
    const hanging = sql.query("SELECT 1");
    await Promise.resolve();
    pass.abort(new Error("the target primary changed"));
    await expect(hanging).rejects.toThrow("the target primary changed");
    await expect(sql.query("SELECT 1")).rejects.toThrow("the target primary changed");
    hang = false;
    sql.follow(new AbortController().signal);
    expect(await sql.query("SELECT 1")).toEqual([{ one: 1 }]);
    expect([targets.length, closed()]).toEqual([2, 1]);
    expect(targets[0]).toMatchObject({ queryTimeoutMs: 30_000, parameters: { lock_timeout: "5000" } });
  });

  test("a session of a pass has limits, one for a checkpoint has none", async () => {
    const { context, targets, closed } = world(async () => []);
    await withSession(context, "app", (session) => session.query("SELECT 1"), {
      parameters: { search_path: "public" },
    });
    await withSession(context, "postgres", (session) => session.query("CHECKPOINT"), { unlimited: true });
    expect(targets[0]).toMatchObject({
      database: "app",
      statementTimeoutMs: 30_000,
      parameters: { lock_timeout: "5000", search_path: "public" },
    });
    expect(targets[1]).not.toHaveProperty("queryTimeoutMs");
    expect(targets[1]?.parameters).toEqual({});
    await withSession(context, "app", (session) => session.query("CREATE DATABASE big"), { limitMs: 600_000 });
    expect(targets[2]).toMatchObject({
      statementTimeoutMs: 600_000,
      queryTimeoutMs: 605_000,
      parameters: { lock_timeout: "5000" },
    });
    expect(closed()).toBe(3);
  });
});
