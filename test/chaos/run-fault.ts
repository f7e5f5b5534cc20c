import { loadavg } from "node:os";
import { nodeAddresses } from "../../local/cluster/addresses.ts";
import { run } from "../../local/process/run.ts";
import { operatorServes, type TestCluster } from "../e2e/support/cluster.ts";
import { kubectl } from "../e2e/support/kubectl.ts";
import { waitFor } from "../e2e/support/wait.ts";
import { startWriter, storedRows, type Writer } from "../e2e/support/writer.ts";
import type { ChaosRecord } from "./chaos-record.ts";
import type { Fault, Scene } from "./fault.ts";
import { faults } from "./faults.ts";
import { stageScene } from "./scene.ts";
import { settle } from "./settle.ts";
import { judge } from "./verdict.ts";

/** Rows of the session start here, far from those that are numbered by the time of day. */
const firstOfSessions = 1_000_000_000_000_000;

interface Writers {
  readonly service: Writer;
  readonly session: Writer;
}

/** How a run went on after the fault was made. */
interface Aftermath {
  /** What did not go on or did not come back. */
  readonly broken?: string;
  readonly healthyAt: number;
}

/** Makes one fault under writes and judges it. Throws only when there was no run: before the fault, or when it could not be made. */
export async function makeOne(
  cluster: TestCluster,
  name: string,
  durability: ChaosRecord["durability"],
): Promise<ChaosRecord> {
  const fault = faults[name];
  if (!fault) throw new Error(`there is no fault ${name}`);
  await fault.prepare?.(cluster);
  const scene = await stageScene(cluster);
  const writers = await startWriters(scene);
  const load = Math.round((loadavg()[0] ?? 0) * 10) / 10;
  const faultAt = Date.now() / 1000;
  const { broken, healthyAt } = await goThrough(fault, scene, writers);
  const healthySeconds = Math.round((healthyAt - faultAt) * 10) / 10;
  // The pod of a session whose node was gone may be gone too; what it printed before is lost with it then.
  const bySession = await waitFor("the session's output", 60_000, () => writers.session.acknowledged()).catch(() => []);
  const throughService = await waitFor("the writer's output", 60_000, () => writers.service.acknowledged());
  await Promise.all([writers.service.stop(), writers.session.stop()]);
  const stored = await waitFor("the rows that are there", 60_000, () => storedRows(cluster)).catch(() => undefined);
  const moved = (await cluster.primary()) !== scene.primary.name;
  const commit = (await run("git", ["rev-parse", "--short", "HEAD"])).trim();
  return {
    fault: name,
    durability,
    moved,
    date: new Date().toISOString(),
    commit,
    healthySeconds,
    load,
    ...judge({ faultAt, throughService, bySession, stored }),
    ...(broken === undefined ? {} : { broken }),
  };
}

/** One through the Service, on another node than the primary, and one with a session that is open on the primary. */
async function startWriters({ cluster, primary }: Scene): Promise<Writers> {
  const { name: node } = nodeAddresses(primary.node);
  const nodes = (await kubectl(["get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"])).split(" ");
  const elsewhere = nodes.find((other) => other !== node) ?? node;
  const firstRow = firstOfSessions + Math.floor(Date.now() / 1000) * 100_000;
  const { address } = primary;
  const [service, session] = await Promise.all([
    startWriter(cluster, { name: "through-service", node: elsewhere }),
    startWriter(cluster, { name: "session", node, address, oneSession: true, firstRow }),
  ]);
  return { service, session };
}

async function goThrough(fault: Fault, scene: Scene, { service }: Writers): Promise<Aftermath> {
  const end = await fault.make(scene);
  await new Promise((resolve) => setTimeout(resolve, fault.holdSeconds * 1000));
  const stopped = await fault.goesOn?.(scene).catch(firstLine);
  try {
    await end();
    if (fault.controlPlane) await operatorServes(scene.cluster);
    const healthyAt = await settle(scene.cluster);
    const seen = (await service.acknowledged()).length;
    await waitFor("writes after the fault", 60_000, async () => (await service.acknowledged()).length > seen + 20);
    return { healthyAt, ...(stopped === undefined ? {} : { broken: stopped }) };
  } catch (error) {
    // A cluster that does not come back is what a run is for: it counts, and all that was seen of it goes to the screen.
    process.stderr.write(`${String(error)}\n`);
    return { healthyAt: Date.now() / 1000, broken: stopped ?? firstLine(error) };
  }
}

function firstLine(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
  return line;
}
