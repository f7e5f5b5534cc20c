import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { installPod, Pod, until } from "./pod.ts";

let pod: Pod;
afterEach(() => pod.stop());

const environment = "PATH=/usr/bin:/bin";

/** A staged folder whose launcher differs from the running one by a trailing byte. */
async function stage(): Promise<string> {
  const staged = pod.path("upgrade");
  await installPod(staged, { programs: pod.root });
  await appendFile(join(staged, "manager"), "\n");
  await writeFile(join(staged, "runtime", "marker"), "new");
  return staged;
}

it("replaces launcher and runtime while the postmaster, its logs, the lock and the deadline live on", async () => {
  pod = await Pod.start();
  const before = await pod.pid();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("drain-stop");
  await runtime.frame("drained");
  const script = `i=0; while [ $i -lt 100000 ]; do echo $i; i=$((i+1)); sleep 0.01; done`;
  runtime.send("spawn", "1", "/tmp", "3", "sh", "-c", script, environment);
  const [, , pid] = await runtime.frame("spawned");
  const tool = await runtime.start("sleep", ["61"]);
  const staged = await stage();
  const asked = Date.now();
  runtime.send("deadline", "4000");
  runtime.send("keep", "1", "what to know");
  runtime.send("upgrade", staged);
  await runtime.gone;

  const { runtime: next, hello } = await pod.greetedRuntime();
  expect(hello[2]).toBe(pid);
  expect(hello[3]).toBe("");
  expect(hello[8]).toBe("what to know");
  expect(await pod.pid()).toBe(before);
  expect(await next.shell(`readlink /proc/1/exe; cat ${pod.path("runtime/marker")}`)).toBe(
    `${pod.path("manager")}\nnew`,
  );
  expect(await next.shell(`kill -0 ${tool} 2>&1`)).not.toBe(""); // the old runtime's tools are gone
  expect(await next.shell("readlink /proc/1/fd/*")).toContain(`${pod.data}/.cnpg-ts.lock`);
  expect(await next.shell("tr '\\0' '\\n' < /proc/self/environ")).not.toMatch(/CNPG_LAUNCHER_(STATE|NOTE)/);
  expect((await readdir(staged)).sort()).toEqual(["manager", "runtime"]); // the old ones, for the runtime to remove
  expect(await readdir(join(staged, "runtime"))).toEqual(["node"]);
  next.send("drain-stop");
  await next.frame("drained");
  let live = "";
  await until("live output", async () => {
    live += await next.read(pod.path("log/postmaster.out"));
    return live.includes("\n");
  });
  await next.gone;
  expect(Date.now() - asked).toBeGreaterThanOrEqual(3990);
  expect(Date.now() - asked).toBeLessThan(5500);
  const last = await pod.greetedRuntime();
  expect(await last.runtime.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, "-1", "9"]);
});

it("can be done twice, and reports the end of an adopted postmaster", async () => {
  pod = await Pod.start();
  let { runtime } = await pod.greetedRuntime();
  runtime.send(
    "spawn",
    "1",
    "/tmp",
    "3",
    "sh",
    "-c",
    `while [ ! -e ${pod.data}/go ]; do sleep 0.05; done; exit 8`,
    environment,
  );
  const [, , pid] = await runtime.frame("spawned");
  for (let i = 0; i < 2; i++) {
    runtime.send("drain-stop");
    await runtime.frame("drained");
    runtime.send("upgrade", await stage());
    await runtime.gone;
    const next = await pod.greetedRuntime();
    expect(next.hello[2]).toBe(pid);
    runtime = next.runtime;
    await rm(pod.path("upgrade"), { recursive: true });
  }
  await runtime.shell(`touch ${pod.data}/go`);
  expect(await runtime.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, "8", "0"]);
});

it.each([
  ["a folder that is not there", async () => "/no/such/folder", "cannot run the staged launcher"],
  [
    "a folder without a runtime",
    async () => {
      const staged = await stage();
      await rm(join(staged, "runtime"), { recursive: true });
      return staged;
    },
    "cannot run the staged runtime",
  ],
  [
    "a launcher that does not start",
    async () => {
      const staged = await stage();
      await writeFile(join(staged, "manager"), "#!/no/such/interpreter\n");
      return staged;
    },
    "cannot start",
  ],
])("refuses %s and goes on unchanged", async (_name, prepare, reason) => {
  pod = await Pod.start();
  const launcher = await readFile(pod.path("manager"));
  const { runtime } = await pod.greetedRuntime();
  runtime.send("drain-stop");
  await runtime.frame("drained");
  runtime.send("upgrade", await prepare());
  expect(await runtime.frame("error")).toEqual(["error", "upgrade", expect.stringContaining(reason)]);
  expect(await readFile(pod.path("manager"))).toEqual(launcher);
  expect(await readdir(pod.path("runtime"))).toEqual(["node"]);
  runtime.send("spawn", "1", "/tmp", "2", "sh", "-c", environment);
  expect((await runtime.frame("spawned"))[1]).toBe("1");
});

it("refuses while the launcher itself drains the logs", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  await mkdir(pod.path("upgrade"));
  runtime.send("upgrade", await stage());
  expect((await runtime.frame("error"))[2]).toContain("send drain-stop");
});
