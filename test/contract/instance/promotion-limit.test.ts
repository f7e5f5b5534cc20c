// The limit of a promotion on a real server: recovery that cannot end, because the process that would end it stands still.
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";
import { listProcesses } from "./processes.ts";

const limitSeconds = 2;

let lab: Lab;
let one: LabInstance;
let two: LabInstance;

beforeAll(async () => {
  lab = await Lab.start({ instances: 2, spec: { postgresql: { promotionTimeout: limitSeconds } } });
  [one, two] = [await lab.instance("lab-1"), await lab.instance("lab-2")];
  await bootPrimary(lab, one);
  await bootStandby(two);
  await until("lab-2 streams", async () => (await two.status()).isWalReceiverActive);
});

afterAll(() => lab?.stop());

/** The process of a server that replays WAL, and that alone can end recovery. */
function startupProcess(instance: LabInstance): number {
  const found = listProcesses().filter((it) => it.folder === instance.pgData && it.command.includes("startup"));
  expect(found.length).toBe(1);
  return found[0]?.pid ?? 0;
}

test("a promotion that does not end in its time is a failure that is told, and is asked for again until it ends", async () => {
  const pid = startupProcess(two);
  process.kill(pid, "SIGSTOP");
  await lab.patchStatus({ targetPrimary: "lab-2" });
  const overdue = `promotion did not end within ${limitSeconds} s (spec.postgresql.promotionTimeout)`;
  const failures = () => two.output.split("\n").filter((line) => line.includes(overdue)).length;
  await until("it is told", async () => failures() >= 1, 90_000);
  // What was asked for can't be taken back: the right to write stays with the server that may become a primary any moment.
  expect((await lab.lease()).spec["holderIdentity"]).toBe("lab-2");
  expect((await lab.cluster()).status?.currentPrimary).toBe("lab-1");
  expect((await two.status()).isPrimary).toBe(false);
  await until("it is tried again", async () => failures() >= 2, 60_000);
  process.kill(pid, "SIGCONT");
  await until("lab-2 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-2", 60_000);
  expect(two.psql("CREATE TABLE written AS SELECT 1 AS x; SELECT x FROM written")).toBe("1");
  expect((await two.status()).timeLineID).toBe(2);
}, 240_000);
