import { describe, expect, test, vi } from "vitest";
import { reconcilerWorld } from "./reconciler-world.ts";

function diskFull(): Error {
  return Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
}

describe("Reconciler", () => {
  test("the lease is left to others while a volume takes no writes, and taken under the eyes of the launcher after that", async () => {
    const { run, until, facts, events, logs, reconciler } = reconcilerWorld({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    facts.held = true;
    facts.silence = "no write to /pgdata came back within 5 s";
    run();
    await until("leave claim");
    expect(events).toEqual(["probe claim", "leave claim"]);
    const waits = logs.records.filter(({ message }) => message === "Waiting").map(({ fields }) => fields["reason"]);
    expect(waits).toEqual(["the primary lease is left to others: no write to /pgdata came back within 5 s"]);
    facts.silence = null;
    events.length = 0;
    reconciler.wake();
    await until("start primary");
    expect(events.slice(0, 4)).toEqual(["probe claim", "acquire", "leave claim", "start primary"]);
  });

  test("lifting a fence starts nothing that is out of date by now", async () => {
    const { set, run, until, events, adopt } = reconcilerWorld({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    adopt();
    set({ fenced: true });
    run();
    await until("fence");
    // Meanwhile another instance was promoted.
    set({ fenced: true, current: "c-2", target: "c-2" });
    await until("standDown");
    set({ current: "c-2", target: "c-2" });
    await until("unfence");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(events.filter((event) => event.startsWith("start "))).toEqual([]);
  });

  test("lifting a fence starts a standby, and again when the first start failed", async () => {
    const { set, run, until, facts, events } = reconcilerWorld({ role: "standby", fenced: true });
    facts.startFails = true;
    run();
    await new Promise((resolve) => setTimeout(resolve, 30));
    set({ fenced: false });
    await until("start standby");
    facts.startFails = false;
    set({ fenced: false });
    await vi.waitFor(() => expect(events).toEqual(["unfence", "start standby", "start standby"]));
  });

  test("settings that a standby needs for its start stay in the files until it is up", async () => {
    const { run, until, facts, reconciler, customConf } = reconcilerWorld({ role: "standby" });
    facts.control = { hotStandby: { max_connections: 500 } };
    facts.accepting = false;
    run();
    await until("start standby");
    for (let pass = 0; pass < 3; pass += 1) {
      reconciler.wake();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(customConf()).toContain("max_connections = '500'");
    facts.accepting = true;
    reconciler.wake();
    await vi.waitFor(() => expect(customConf()).not.toContain("max_connections = '500'"));
  });

  test("PostgreSQL that is down and that nobody starts is prepared and started anew", async () => {
    const { run, until, reconciler, lifecycle, events } = reconcilerWorld({ role: "standby" });
    reconciler.adopted();
    lifecycle.busy = true;
    run();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events).toEqual([]);
    lifecycle.busy = false;
    reconciler.wake();
    await until("start standby");
  });

  test("an old primary is stopped while its pass hangs in a statement", async () => {
    const { set, run, until, facts, adopt } = reconcilerWorld({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    adopt();
    const asked = new Promise<void>((resolve) => {
      facts.query = () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    run();
    await asked;
    set({ target: "c-2" });
    await until("stepDown switchover");
  });

  test("the lease is kept while a promotion that was asked for is under way, and the server stops when it is not wanted", async () => {
    const { set, run, until, events, facts, adopt } = reconcilerWorld({
      role: "standby",
      target: "c-1",
    });
    adopt();
    const asked = new Promise<void>((resolve) => {
      facts.query = async (text) => {
        if (text.includes("pg_promote")) resolve();
        return text.includes("recovery") ? [{ recovering: true }] : [];
      };
    });
    run();
    await asked;
    set({ target: "c-2" });
    await until("terminate failover 0");
    expect(events).not.toContain("standDown");
    expect(facts.held).toBe(true);
  });

  test("an instance that is not to be primary gives the lease back", async () => {
    const { run, until, adopt } = reconcilerWorld({ role: "standby" });
    adopt();
    run();
    await until("standDown");
  });

  test("a full disk before the first start ends the container with the code for it", async () => {
    const { run, until, facts } = reconcilerWorld({ role: "standby" });
    facts.fileError = diskFull();
    run();
    await until("terminate error 4");
  });

  test("a full disk keeps a running standby neither from its fence nor from its promotion", async () => {
    const { set, run, until, facts, adopt } = reconcilerWorld({ role: "standby", target: "c-1" });
    facts.fileError = diskFull();
    adopt();
    facts.query = async (text) => {
      if (text.includes("pg_promote")) [facts.role, facts.holder] = ["primary", "me"];
      return text.includes("recovery") ? [{ recovering: false }] : [];
    };
    run();
    await until("claim");
    set({ fenced: true });
    await until("fence");
  });
});
