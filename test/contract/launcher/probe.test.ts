import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Pod, sleep, until } from "./pod.ts";

let pod: Pod;
afterEach(() => pod.stop());

/** An open for writing never comes back from a FIFO that nobody reads, as nothing does from a disk that hangs. */
function hang(folder: string): void {
  rmSync(join(folder, ".cnpg-ts.probe"), { force: true });
  execFileSync("mkfifo", [join(folder, ".cnpg-ts.probe")]);
}

it("kills the pod when a volume hangs, and the next runtime is told why and that a postmaster ended", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("spawn", "1", "/tmp", "2", "sleep", "61", "PATH=/usr/bin:/bin");
  await runtime.frame("spawned");
  hang(pod.data);
  runtime.send("probe", "1500", pod.path("ipc"), pod.data);
  await runtime.gone;
  expect(pod.log).toContain(`no write to ${pod.data} came back for 1500 ms`);
  const next = await pod.greetedRuntime();
  expect(next.hello[7]).toBe("disk");
  await next.runtime.frame("postmaster-exited");
  expect(await next.runtime.shell("ps -e -o comm=")).not.toContain("launcher-probe");
  next.runtime.send("spawn", "2", "/tmp", "2", "sleep", "61", "PATH=/usr/bin:/bin");
  await next.runtime.frame("spawned");
  next.runtime.tell({ exit: 1 });
  expect((await pod.greetedRuntime()).hello[7]).toBe("");
});

it("leaves a pod alone whose volumes answer, and ends with it at once", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("probe", "1200", pod.data);
  await until("the first probe", () => existsSync(join(pod.data, ".cnpg-ts.probe")));
  await sleep(2_500);
  expect(pod.log).not.toContain("came back");
  const asked = Date.now();
  runtime.tell({ frame: ["exit", "0"], exit: 0 });
  expect(await pod.exit).toBe(0);
  expect(Date.now() - asked).toBeLessThan(4_000);
});

it("takes a later request instead of an earlier one, and 0 ends it", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  hang(pod.data);
  runtime.send("probe", "1500", pod.data);
  await sleep(500);
  runtime.send("probe", "0");
  await sleep(2_500);
  expect(pod.log).not.toContain("came back");
  expect(await runtime.shell("ps -e -o comm=,stat= | grep launcher-probe | grep -v Z")).toBe("");
});
