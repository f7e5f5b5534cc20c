import { roles } from "../api/constants.ts";
import { describeDataDamage } from "../plan/instance/data-damage.ts";
import type { InstanceContext } from "./instance-context.ts";

/** Well within the kubelet's patience with a probe. */
const connectLimitMs = 2_000;

/**
 * Opens a session like a client's. The ones that we keep have all they need in memory and go on when the files below are gone,
 * while the server answers every new client with an error; to somebody who only knocks it still seems to be well.
 */
export async function lookForDataDamage(context: InstanceContext): Promise<string | undefined> {
  const { sql, paths, settings, state, logger } = context;
  const before = state.dataDamage;
  try {
    const session = await sql.connect({
      host: paths.socketDir,
      port: settings.postgresPort,
      user: roles.superuser,
      database: "postgres",
      applicationName: "cnpg-instance-manager",
      connectTimeoutMs: connectLimitMs,
    });
    state.dataDamage = undefined;
    await session.close();
  } catch (error) {
    // What says nothing about the files is no reason to think otherwise than before.
    const damage = describeDataDamage(error ?? {});
    if (damage !== undefined) state.dataDamage = damage;
  }
  if (state.dataDamage !== undefined && before === undefined) {
    logger.error("PostgreSQL lets nobody in, as files of its data folder are gone or cannot be read", {
      pgdata: paths.pgData,
      reason: state.dataDamage,
    });
  }
  return state.dataDamage;
}
