// Memory of a sidecar that archives one segment after another: as much after many as after a few. The number of segments can be
// raised by hand, to what the case in question names (2,000).
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listAll } from "../../../src/ports/object-store.ts";
import { segments } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { openSidecarLab, type SidecarLab, sidecarEnvironment } from "./sidecar-lab.ts";
import { buildPluginProgram, type PluginProgram, type SidecarProcess, spawnSidecar } from "./sidecar-process.ts";

const count = Number(process.env["SIDECAR_MEMORY_SEGMENTS"] || 160);
const early = Math.round(count / 4);
/** Segments that lie ready, for the look-ahead to find. */
const ahead = 12;
const segmentBytes = 16 * 1024 * 1024;
const mostGrowth = 1.2;

let lab: SidecarLab;
let program: PluginProgram;
let sidecar: SidecarProcess;
let folder: string;

beforeAll(async () => {
  [lab, program] = await Promise.all([openSidecarLab(), buildPluginProgram()]);
  await lab.useStore({ wal: { compression: "gzip", maxParallel: 8 } });
  folder = await mkdtemp(join(tmpdir(), "sidecar-memory-"));
  await mkdir(join(folder, "pgdata/pg_wal/archive_status"), { recursive: true });
  sidecar = await spawnSidecar(program, lab.account.kubeconfig, sidecarEnvironment(folder), join(folder, "plugins"));
}, 240_000);
afterAll(async () => {
  await sidecar?.kill();
  await lab?.stop();
  program?.remove();
  await rm(folder, { recursive: true, force: true });
});

const wal = (name: string) => join(folder, "pgdata/pg_wal", name);
const ready = (name: string) => join(folder, "pgdata/pg_wal/archive_status", `${name}.ready`);

test("is bounded, however many segments are archived", async () => {
  const names = segments(1, count);
  const resident: number[] = [];
  let written = 0;
  for (const [at, name] of names.entries()) {
    for (; written < Math.min(names.length, at + ahead); written++) {
      const next = names[written] ?? "";
      await writeFile(wal(next), makeSegment(next, { segmentBytes }));
      await writeFile(ready(next), "");
    }
    await sidecar.plugin.wal.archive({ cluster: lab.cluster(), sourceFileName: wal(name) });
    await rm(wal(name));
    await rm(ready(name));
    resident.push(await status("VmRSS"));
  }
  const usual = (end: number) => median(resident.slice(end - 20, end));
  const shown = `MB after ${early}, after ${count} segments, peak: ${usual(early)}, ${usual(count)}, ${await status("VmHWM")}`;
  if (process.env["SIDECAR_MEMORY_SEGMENTS"]) process.stdout.write(`${shown}\n`);
  expect(usual(count), shown).toBeLessThan(usual(early) * mostGrowth);
  const { objects } = await listAll(lab.store, "clusters/orders/wals/");
  expect(objects).toHaveLength(count);
}, 1_800_000);

/** Megabytes that the kernel tells of the sidecar. */
async function status(field: string): Promise<number> {
  const text = await readFile(`/proc/${sidecar.pid}/status`, "utf8");
  return Math.round(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) / 1024);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
