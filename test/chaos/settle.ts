import { isHealthy, type TestCluster } from "../e2e/support/cluster.ts";
import { waitFor } from "../e2e/support/wait.ts";

/** Instances of every cluster that faults are made on. */
const instances = 3;
/** How long all has to be well in one piece: what the operator says of a cluster is a moment old. */
const steadyMs = 8_000;
const timeoutMs = 600_000;

/**
 * Waits until the operator says that the cluster is healthy and its primary sends WAL to each of the others, for a while
 * without a break. Resolves with when that began, in seconds since the epoch.
 */
export async function settle(cluster: TestCluster): Promise<number> {
  let since: number | undefined;
  const steady = async () => {
    const whole = await isWhole(cluster).catch(() => false);
    since = whole ? (since ?? Date.now()) : undefined;
    return since !== undefined && Date.now() - since >= steadyMs ? since / 1000 : undefined;
  };
  try {
    return await waitFor("the cluster to be whole", timeoutMs, steady);
  } catch (error) {
    // Tells what a person would look at first.
    await cluster.healthy(instances, 10_000);
    throw error;
  }
}

async function isWhole(cluster: TestCluster): Promise<boolean> {
  if (!isHealthy(await cluster.get(), instances)) return false;
  const streaming = "select count(*) from pg_stat_replication where state = 'streaming'";
  return (await cluster.sql(await cluster.primary(), streaming, "postgres")) === String(instances - 1);
}
