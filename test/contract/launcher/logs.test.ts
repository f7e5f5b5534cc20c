import { readFile, writeFile } from "node:fs/promises";
import { afterEach, expect, it } from "vitest";
import { Pod, until } from "./pod.ts";

const names = ["postgres", "postgres.csv", "postgres.json", "postmaster.out", "postmaster.err"];
let pod: Pod;
afterEach(() => pod.stop());

/** What the spill file holds, by FIFO. */
function parseSpill(spill: Buffer): Map<string, string> {
  const texts = new Map<string, string>();
  let at = 0;
  while (at < spill.length) {
    const name = names[spill.readUInt8(at)] ?? "?";
    const end = at + 5 + spill.readUInt32BE(at + 1);
    expect(end).toBeLessThanOrEqual(spill.length);
    texts.set(name, (texts.get(name) ?? "") + spill.toString("utf8", at + 5, end));
    at = end;
  }
  return texts;
}

it("spills what is written before a runtime reads, by FIFO and in order, and hands it over", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  for (const name of names)
    await runtime.shell(`for i in 1 2 3; do echo "${name} $i" > ${pod.path(`log/${name}`)}; done`);
  await until("spill of all", async () =>
    (await readFile(pod.path("ipc/spill"))).toString().includes("postmaster.err 3"),
  );
  runtime.send("drain-stop");
  expect(await runtime.frame("drained")).toEqual(["drained", pod.path("ipc/spill"), "0"]);
  const texts = parseSpill(await readFile(pod.path("ipc/spill")));
  for (const name of names) expect(texts.get(name)).toBe(`${name} 1\n${name} 2\n${name} 3\n`);
  await runtime.shell(`echo live > ${pod.path("log/postgres.csv")} & wait`);
  expect(await runtime.read(pod.path("log/postgres.csv"))).toBe("live\n");
});

it("never blocks a writer that floods while the runtime is dead, keeps 16 MiB and counts every line it drops", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("drain-stop");
  await runtime.frame("drained");
  // 40 MB in lines of 100 bytes: far more than the pipe and the spill file hold together.
  const lines = 400_000;
  const flood = `BEGIN { for (i = 0; i < ${lines}; i++) printf "%099d\\n", i }`;
  const script = `while [ ! -e ${pod.data}/go ]; do sleep 0.05; done; awk '${flood}' > ${pod.path("log/postgres.csv")}; echo done > ${pod.data}/done; sleep 60`;
  runtime.send("spawn", "1", "/tmp", "3", "sh", "-c", script, "PATH=/usr/bin:/bin");
  const [, , pid] = await runtime.frame("spawned");
  await runtime.shell(`touch ${pod.data}/go`);
  runtime.tell({ exit: 1 });
  await until(
    "end of the flood",
    () =>
      readFile(`${pod.data}/done`).then(
        () => true,
        () => false,
      ),
    30_000,
  );

  const next = await pod.greetedRuntime();
  expect(next.hello[2]).toBe(pid);
  next.runtime.send("drain-stop");
  const [, path = "", dropped] = await next.runtime.frame("drained");
  const spill = await readFile(path);
  expect(spill.length).toBeGreaterThan(15 << 20);
  expect(spill.length).toBeLessThanOrEqual(16 << 20);
  const kept = (parseSpill(spill).get("postgres.csv") ?? "").trimEnd().split("\n");
  const live = (await next.runtime.read(pod.path("log/postgres.csv"))).split("\n").length - 1;
  // Nothing is lost silently: what was kept, dropped or is still in the pipe adds up, and kept lines are whole.
  expect(kept.length + Number(dropped) + live).toBe(lines);
  expect(kept.every((line, i) => line === String(i).padStart(99, "0"))).toBe(true);
});

it("goes on after a record that was cut, and starts the count anew once it was told", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  runtime.send("drain-stop");
  await runtime.frame("drained");
  const whole = Buffer.concat([Buffer.from([1, 0, 0, 0, 4]), Buffer.from("old\n")]);
  await writeFile(pod.path("ipc/spill"), Buffer.concat([whole, Buffer.from([1, 0, 0, 1, 0]), Buffer.from("cut")]));
  runtime.tell({ exit: 1 });
  const next = await pod.greetedRuntime();
  await next.runtime.shell(`echo new > ${pod.path("log/postgres.csv")}`);
  await until("spill", async () => (await readFile(pod.path("ipc/spill"))).toString().includes("new"));
  next.runtime.send("drain-stop");
  await next.runtime.frame("drained");
  expect(parseSpill(await readFile(pod.path("ipc/spill"))).get("postgres.csv")).toBe("old\nnew\n");
});

it("counts what a full disk would not take as dropped", async () => {
  pod = await Pod.start();
  const { runtime } = await pod.greetedRuntime();
  // The spill file cannot be made when its name is taken by a folder.
  await runtime.shell(`mkdir ${pod.path("ipc/spill")}; printf 'a\\nb\\nc\\n' > ${pod.path("log/postgres")}`);
  await until("pipe empty", async () => {
    runtime.send("hello", "1");
    return (await runtime.frame("hello"))[5] === "3";
  });
  runtime.send("drain-stop");
  expect((await runtime.frame("drained"))[2]).toBe("3");
  runtime.send("hello", "1");
  expect((await runtime.frame("hello"))[5]).toBe("0");
});
