import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Pod, sleep, until } from "./pod.ts";

let pod: Pod;
afterEach(() => pod.stop());

const file = (folder: string) => join(folder, ".cnpg-ts.probe");

/** An open for writing never comes back from a FIFO that nobody reads, as nothing does from a disk that hangs. */
function hang(folder: string): void {
  rmSync(file(folder), { force: true });
  execFileSync("mkfifo", [file(folder)]);
}

it("kills the pod when a volume hangs, and the next runtime is told why and that a postmaster ended", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("spawn", "1", "/tmp", "2", "sleep", "61", "PATH=/usr/bin:/bin");
  await runtime.frame("spawned");
  hang(pod.data);
  runtime.send("probe", "2", "1500", pod.path("ipc"), pod.data);
  await runtime.gone;
  // Written after the kill.
  await until("it says so", () => pod.log.includes(`no write to ${pod.data} came back for 1500 ms`));
  const next = await pod.greetedRuntime();
  expect(next.hello[7]).toBe("disk");
  await next.runtime.frame("postmaster-exited");
  expect(await next.runtime.shell("ps -e -o comm=")).not.toContain("launcher-probe");
  next.runtime.send("spawn", "2", "/tmp", "2", "sleep", "61", "PATH=/usr/bin:/bin");
  await next.runtime.frame("spawned");
  next.runtime.tell({ exit: 1 });
  expect((await pod.greetedRuntime()).hello[7]).toBe("");
});

it("kills a pod without a postmaster too, and goes on probing when the runtime that asked has crashed", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("probe", "1", "3000", pod.data);
  await runtime.frame("probed");
  runtime.tell({ exit: 1 });
  const next = await pod.greetedRuntime();
  hang(pod.data);
  await next.runtime.gone;
  await until("it says so", () => pod.log.includes(`no write to ${pod.data} came back for 3000 ms`));
  expect((await pod.greetedRuntime()).hello[7]).toBe("disk");
});

it("leaves a pod alone whose volumes answer, and ends with it at once", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("probe", "1", "1200", pod.data);
  await until("the first probe", () => existsSync(file(pod.data)));
  await sleep(2_500);
  expect(pod.log).not.toContain("came back");
  const asked = Date.now();
  runtime.tell({ frame: ["exit", "0"], exit: 0 });
  expect(await pod.exit).toBe(0);
  expect(Date.now() - asked).toBeLessThan(4_000);
});

it("tells once every volume has taken a write, and for the latest request only", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  hang(pod.data);
  runtime.send("probe", "1", "60000", pod.path("ipc"), pod.data);
  await until("a write to the volume that answers", () => existsSync(file(pod.path("ipc"))));
  runtime.send("probe", "2", "60000", pod.path("ipc"));
  expect(await runtime.frame("probed")).toEqual(["probed", "2"]);
  // One that hung is killed, and the disk is asked again as soon as that has ended.
  rmSync(file(pod.data));
  runtime.send("probe", "3", "60000", pod.path("ipc"), pod.data);
  expect(await runtime.frame("probed")).toEqual(["probed", "3"]);
  runtime.send("probe", "4", "0");
  expect(await runtime.frame("probed")).toEqual(["probed", "4"]);
  expect(runtime.pending("probed")).toBe(0);
});

it("takes a later request instead of an earlier one, and 0 ends it", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  hang(pod.data);
  runtime.send("probe", "1", "1500", pod.data);
  await sleep(500);
  runtime.send("probe", "2", "0");
  await sleep(2_500);
  expect(pod.log).not.toContain("came back");
  expect(await runtime.shell("ps -e -o comm=,stat= | grep launcher-probe | grep -v Z")).toBe("");
});
