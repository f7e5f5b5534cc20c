import { afterEach, expect, it } from "vitest";
import { Pod, sleep, until } from "./pod.ts";

let pod: Pod;
afterEach(() => pod.stop());

it("kills every other process of the pod, also one in a session of its own, and starts a new runtime", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send(
    "spawn",
    "1",
    "/tmp",
    "3",
    "bash",
    "-c",
    "trap '' TERM INT; setsid sleep 61 & sleep 62",
    "PATH=/usr/bin:/bin",
  );
  const [, , pid] = await runtime.frame("spawned");
  await runtime.start("sleep", ["63"], true);
  const asked = Date.now();
  runtime.send("deadline", "700");
  await runtime.gone;
  const took = Date.now() - asked;
  expect(took).toBeGreaterThanOrEqual(690);
  expect(took).toBeLessThan(1700);
  const next = await pod.greetedRuntime();
  expect(next.hello[2]).toBe("0");
  expect(await next.runtime.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, "-1", "9"]);
  expect(await next.runtime.shell("ps -e -o args=")).not.toMatch(/sleep 6/);
});

it("of two deadlines the later request holds, and 0 takes it away", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("deadline", "400");
  runtime.send("deadline", "2000");
  await sleep(1000);
  expect(pod.log).not.toContain("deadline has passed");
  runtime.send("deadline", "0");
  await sleep(1500);
  expect(pod.log).not.toContain("deadline has passed");
  runtime.send("deadline", "5000");
  runtime.send("deadline", "100");
  await runtime.gone;
  // Written after the kill.
  await until("it says so", () => pod.log.includes("deadline has passed"));
});

it("survives a restart of the runtime", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  const asked = Date.now();
  runtime.tell({ frame: ["deadline", "1500"], exit: 1 });
  const next = await pod.greetedRuntime();
  expect(Date.now() - asked).toBeLessThan(1400);
  await next.runtime.gone;
  expect(Date.now() - asked).toBeGreaterThanOrEqual(1490);
});

it("is kept to the second while the logs are flooded and no runtime is up", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send(
    "spawn",
    "1",
    "/tmp",
    "3",
    "sh",
    "-c",
    `exec yes > ${pod.path("log/postgres.csv")}`,
    "PATH=/usr/bin:/bin",
  );
  await runtime.frame("spawned");
  const asked = Date.now();
  runtime.tell({ frame: ["deadline", "1000"], exit: 1 });
  await until("the deadline", () => pod.log.includes("deadline has passed"));
  expect(Date.now() - asked).toBeLessThan(2000);
});
