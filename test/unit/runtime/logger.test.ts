import { describe, expect, it } from "vitest";
import { KubeError } from "../../../src/ports/kube-api.ts";
import { formatErrorText } from "../../../src/runtime/log-format.ts";
import { withLogFields } from "../../../src/runtime/log-scope.ts";
import { createLogger, type LoggerOptions } from "../../../src/runtime/logger.ts";
import { formatNanos, wallClockNanos } from "../../../src/runtime/wall-clock-nanos.ts";

function aLogger(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    level: "info",
    timestamp: () => "2026-01-01T00:00:00.000000001Z",
    destination: { write: (line) => void lines.push(line), flush: () => undefined },
    ...options,
  });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? "null") as Record<string, unknown> };
}

describe("logger", () => {
  it("writes one object a line with the original's keys in its order", () => {
    const { logger, lines } = aLogger({ pod: "demo-1" });
    logger.child({ logger: "initdb", cluster: "demo" }).info("Created", { pgdata: "/data", count: 2 });
    expect(lines).toEqual([
      '{"level":"info","ts":"2026-01-01T00:00:00.000000001Z","logger":"initdb","msg":"Created","logging_pod":"demo-1","cluster":"demo","pgdata":"/data","count":2}',
    ]);
  });

  it("renames level and time as told", () => {
    const { logger, last } = aLogger({ fieldLevel: "severity", fieldTimestamp: "time" });
    logger.warning("x");
    expect(last()).toEqual({ severity: "warning", time: "2026-01-01T00:00:00.000000001Z", msg: "x" });
  });

  it.each([
    ["error", ["error"]],
    ["warning", ["error", "warning"]],
    ["info", ["error", "warning", "info"]],
    ["debug", ["error", "warning", "info", "debug"]],
    ["trace", ["error", "warning", "info", "debug", "trace"]],
  ] as const)("writes at level %s only %j", (level, expected) => {
    const { logger, lines } = aLogger({ level });
    for (const name of ["error", "warning", "info", "debug", "trace"] as const) logger[name]("x");
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(expected);
  });

  it("thins a flood of equal records out, each level and text by itself, and all loggers together", () => {
    let now = 0;
    const { logger, lines } = aLogger({ now: () => now });
    const child = logger.child({ logger: "child" });
    for (let i = 0; i < 250; i++) {
      logger.info("x", { i });
      child.info("x", { i });
    }
    // The first hundred, and of the four hundred after them each hundredth.
    expect(lines).toHaveLength(104);
    logger.info("y");
    logger.warning("x");
    expect(lines).toHaveLength(106);
    now = 999;
    logger.info("x");
    expect(lines).toHaveLength(106);
    now = 1_000;
    logger.info("x");
    expect(lines).toHaveLength(107);
  });

  it.each(["debug", "trace"] as const)("thins nothing out at level %s", (level) => {
    const { logger, lines } = aLogger({ level });
    for (let i = 0; i < 500; i++) logger.info("x");
    expect(lines).toHaveLength(500);
  });

  it("writes every line that another program says, and nothing of our work into it", () => {
    const { logger, lines, last } = aLogger();
    withLogFields({ reconcileID: "a" }, () => {
      for (let i = 0; i < 500; i++) logger.info("the same again", { pipe: "stderr" });
    });
    expect(lines).toHaveLength(500);
    expect(last()).not.toHaveProperty("reconcileID");
  });

  it("adds what the work under way is to the records of all loggers, and to nobody else's", async () => {
    const { logger, lines } = aLogger();
    const other = logger.child({ logger: "other", name: "its own" });
    const pass = async (id: string) => {
      await new Promise((resolve) => setImmediate(resolve));
      withLogFields({ step: 1 }, () => other.info(id));
    };
    await Promise.all(["a", "b"].map((id) => withLogFields({ reconcileID: id, name: "c" }, () => pass(id))));
    logger.info("outside");
    const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records.map(({ msg, reconcileID, name, step }) => [msg, reconcileID, name, step])).toEqual([
      ["a", "a", "its own", 1],
      ["b", "b", "its own", 1],
      ["outside", undefined, undefined, undefined],
    ]);
  });

  it("names the place of the call only when debugging", () => {
    const debugging = aLogger({ level: "debug" });
    debugging.logger.info("x");
    expect(debugging.last()["caller"]).toContain("logger.test.ts");
    const normal = aLogger();
    normal.logger.info("x");
    expect(normal.last()).not.toHaveProperty("caller");
  });

  it("renders errors as text along their causes, with a stack only for what nobody foresaw", () => {
    const { logger, last } = aLogger();
    logger.error("Failed", { error: new Error("outer", { cause: new Error("inner") }) });
    expect(last()["error"]).toBe("outer: inner");
    expect(last()["stacktrace"]).toContain("logger.test.ts");
    logger.error("Failed", { error: new KubeError("get pods a/b: 503", { kind: "unavailable", status: 503 }) });
    expect(last()).toMatchObject({ error: "get pods a/b: 503" });
    expect(last()).not.toHaveProperty("stacktrace");
    logger.warning("Failed", { error: new Error("x") });
    expect(last()).not.toHaveProperty("stacktrace");
  });

  it("never writes secrets", () => {
    const { logger, lines } = aLogger();
    logger.info("x", {
      password: "hunter2",
      env: [{ PGPASSWORD: "hunter2", PGUSER: "app" }],
      object: {
        kind: "Secret",
        metadata: { name: "s" },
        data: { password: "aHVudGVyMg==" },
        stringData: { other: "hunter2" },
      },
      uri: "postgresql://app:hunter2@demo-rw:5432/app",
      error: new Error("cannot connect to postgres://app:hunter2@host/app"),
      bytes: new TextEncoder().encode("hunter2"),
    });
    const text = lines.join("");
    expect(text).not.toMatch(/hunter2|aHVudGVyMg/);
    expect(text).toContain("PGUSER");
    expect(text).toContain("postgresql://app:[redacted]@demo-rw:5432/app");
  });

  it("survives fields that JSON cannot hold", () => {
    const { logger, last } = aLogger();
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    logger.info("x", {
      cycle,
      big: 10n,
      map: new Map([["a", 1]]),
      set: new Set([1]),
      date: new Date(0),
      none: undefined,
      fn: () => 1,
    });
    expect(last()).toMatchObject({ big: "10", map: { a: 1 }, set: [1], date: "1970-01-01T00:00:00.000Z" });
  });
});

describe("formatErrorText", () => {
  it.each([
    ["a repeated cause", new Error("failed: inner", { cause: new Error("inner") }), "failed: inner"],
    [
      "an aggregate without text",
      new AggregateError([new Error("v4 refused"), new Error("v6 refused")]),
      "v4 refused; v6 refused",
    ],
    ["a code alone", Object.assign(new Error(""), { code: "ECONNRESET" }), "ECONNRESET"],
    ["a thrown string", "oops", "oops"],
    ["a thrown object", { a: 1 }, '{"a":1}'],
    ["nothing", undefined, "unknown error"],
  ])("renders %s", (_name, error, text) => {
    expect(formatErrorText(error)).toBe(text);
  });
});

describe("wall clock", () => {
  it("formats nanoseconds without trailing zeros", () => {
    expect(formatNanos(1_764_460_998_624_536_165n)).toBe("2025-11-30T00:03:18.624536165Z");
    expect(formatNanos(1_764_460_998_624_500_000n)).toBe("2025-11-30T00:03:18.6245Z");
    expect(formatNanos(1_764_460_998_000_000_000n)).toBe("2025-11-30T00:03:18Z");
  });

  it("follows the system clock within two milliseconds and never repeats backwards in a burst", () => {
    const stamps = Array.from({ length: 1000 }, () => Date.parse(wallClockNanos()));
    expect(Math.abs((stamps.at(-1) ?? 0) - Date.now())).toBeLessThan(50);
    expect([...stamps].sort((a, b) => a - b)).toEqual(stamps);
  });
});
