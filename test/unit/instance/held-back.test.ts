import { describe, expect, test, vi } from "vitest";
import { reconcilerWorld } from "./reconciler-world.ts";

describe("a definition that is held back", () => {
  test("changes no file and starts nothing, and that is told once", async () => {
    const { set, run, until, facts, logs, files, events, reconciler } = reconcilerWorld({ role: "standby" });
    const before = files();
    set({ judged: true });
    run();
    const told = () => logs.messages("warning").filter((message) => message.includes("came past the webhooks")).length;
    await vi.waitFor(() => expect(told()).toBe(1));
    for (let pass = 0; pass < 3; pass += 1) {
      reconciler.wake();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(told()).toBe(1);
    expect(files()).toEqual(before);
    expect(events).toEqual([]);
    facts.held = true;
    set({ judged: false });
    await until("start standby");
    expect(logs.messages("info")).toContain("The definition of the Cluster is admitted again");
  });

  test("keeps nobody from a fence, has none lifted, and lets an old primary step down", async () => {
    const { set, run, until, postmaster, events, files, adopt } = reconcilerWorld({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    adopt();
    set({ judged: true });
    run();
    await new Promise((resolve) => setTimeout(resolve, 30));
    const before = files();
    set({ fenced: true });
    await until("fence");
    set({ fenced: false });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events).not.toContain("unfence");
    postmaster.pid = 7;
    set({ target: "c-2" });
    await until("stepDown switchover");
    expect(files()).toEqual(before);
  });

  test("lets a successor be promoted by the definition before it", async () => {
    const { set, run, until, events, facts, files, adopt } = reconcilerWorld({ role: "standby" });
    adopt();
    facts.query = async (text) => {
      if (text.includes("pg_promote")) [facts.role, facts.holder] = ["primary", "me"];
      return text.includes("recovery") ? [{ recovering: false }] : [];
    };
    run();
    await vi.waitFor(() => expect(files().size).toBeGreaterThan(4));
    const before = files();
    // It would make this a replica cluster, which has nobody to promote.
    facts.held = true;
    set({ target: "c-1", judged: true, replica: true });
    await until("claim");
    expect(events).toContain("acquire");
    expect(files()).toEqual(before);
  });

  test("promotes no designated primary where no definition before it is known", async () => {
    const { set, run, events, logs, adopt } = reconcilerWorld({
      role: "standby",
      target: "c-1",
    });
    adopt();
    set({ judged: true, replica: false });
    run();
    await vi.waitFor(() => expect(logs.messages("warning").join()).toContain("came past the webhooks"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events).not.toContain("acquire");
    expect(events).not.toContain("claim");
  });
});
