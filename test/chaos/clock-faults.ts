import { X509Certificate } from "node:crypto";
import { childNames } from "../../src/api/names.ts";
import type { TestCluster } from "../e2e/support/cluster.ts";
import { getObject } from "../e2e/support/kubectl.ts";
import { waitFor } from "../e2e/support/wait.ts";
import { setClock } from "./fake-clock.ts";
import type { Fault, PlacedInstance, Scene } from "./fault.ts";

/** How far a clock may seem to be off from what it was set to, in seconds. */
const tolerance = 60;

/** Jumps of the wall clock that PostgreSQL and the instance manager of one pod read; others keep the time. */
export const clockFaults: Readonly<Record<string, Fault>> = {
  "clock-ahead": {
    about: "the clock of the primary's pod jumps 10 minutes ahead, and back after 30 s",
    ...jump(600, ({ primary }) => primary),
  },
  "clock-behind": {
    about: "the clock of the primary's pod jumps 10 minutes back, and ahead again after 30 s",
    ...jump(-600, ({ primary }) => primary),
  },
  "standby-clock-ahead": {
    about: "the clock of one standby's pod jumps 10 minutes ahead, and back after 30 s",
    ...jump(600, ({ primary, standbys }) => standbys[0] ?? primary),
  },
};

function jump(seconds: number, where: (scene: Scene) => PlacedInstance): Omit<Fault, "about"> {
  return {
    holdSeconds: 30,
    scene: "clock",
    prepare: (cluster) => untilCertificatesAreValid(cluster, seconds),
    make: async (scene) => {
      // Its container may be on its way to a new start just then.
      const reset = () =>
        waitFor("the clock to be set back", 60_000, () => setClock(scene, where(scene), 0).then(() => true));
      await setClock(scene, where(scene), seconds);
      try {
        await waitFor("the clocks to jump", 30_000, () => haveJumped(scene, where(scene), seconds));
      } catch (error) {
        await reset();
        throw error;
      }
      return reset;
    },
    goesOn: archivingStopped,
  };
}

/** Certificates are valid from a few minutes before they were made on: a clock that is set back further has to find older ones. */
async function untilCertificatesAreValid({ namespace, name }: TestCluster, seconds: number): Promise<void> {
  const { ca, server, replication } = childNames(name);
  const from = await Promise.all([
    validFrom(namespace, ca, "ca.crt"),
    ...[server, replication].map((it) => validFrom(namespace, it, "tls.crt")),
  ]);
  const waitMs = Math.max(...from) - (Date.now() + seconds * 1000);
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}

async function validFrom(namespace: string, secret: string, key: string): Promise<number> {
  const found = await getObject<{ data: Record<string, string> }>(namespace, "secret", secret);
  const text = Buffer.from(found?.data[key] ?? "", "base64");
  return new X509Certificate(text).validFromDate.getTime();
}

/** A clock that did not jump proves nothing: looks at PostgreSQL's, and at the manager's where it shows. */
async function haveJumped(scene: Scene, instance: PlacedInstance, seconds: number): Promise<boolean> {
  const { cluster, primary } = scene;
  const isOff = (at: number) => Math.abs(at - Date.now() / 1000 - seconds) < tolerance;
  const time = await cluster.sql(instance.name, "select extract(epoch from clock_timestamp())", "postgres");
  if (!isOff(Number(time))) return false;
  // The holder writes its own time into the Lease; who became the holder meanwhile has another clock.
  if (instance.name !== primary.name || (await cluster.primary()) !== primary.name) return true;
  const lease = await getObject<{ spec: { renewTime: string } }>(cluster.namespace, "lease", cluster.name);
  return isOff(Date.parse(lease?.spec.renewTime ?? "") / 1000);
}

/** Whether a segment that is finished now gets into the archive. */
async function archivingStopped({ cluster }: Scene): Promise<string | undefined> {
  const archived = async () =>
    Number(await cluster.sql(await cluster.primary(), "select archived_count from pg_stat_archiver", "postgres"));
  const before = await archived();
  await cluster.sql(await cluster.primary(), "select pg_switch_wal()", "postgres");
  return waitFor("a segment in the archive", 60_000, async () => (await archived()) > before).then(
    () => undefined,
    () => "no segment was archived within a minute",
  );
}
