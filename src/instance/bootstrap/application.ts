import { applicationDatabase, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { connectLocally } from "./post-init.ts";

/**
 * Gives a cluster that was copied from elsewhere its application's role and database: what is missing is made, and a database
 * that is there goes to the new owner. The password is set by the running instance.
 */
export async function ensureApplication(context: InstanceContext, cluster: Cluster): Promise<void> {
  const application = applicationDatabase(cluster);
  if (!application || isReplicaCluster(cluster)) return;
  const { database, owner } = application;
  const [quotedDatabase, quotedOwner] = [quoteIdentifier(database), quoteIdentifier(owner)];
  context.logger.info("Configuring the application database", { database, owner });
  const session = await connectLocally(context, "postgres");
  try {
    const [role] = await session.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [owner]);
    if (!role) await session.query(`CREATE ROLE ${quotedOwner} LOGIN`);
    const [found] = await session.query("SELECT pg_get_userbyid(datdba) AS owner FROM pg_database WHERE datname = $1", [
      database,
    ]);
    if (!found) await session.query(`CREATE DATABASE ${quotedDatabase} OWNER ${quotedOwner}`);
    else if (found["owner"] !== owner) await session.query(`ALTER DATABASE ${quotedDatabase} OWNER TO ${quotedOwner}`);
  } finally {
    await session.close();
  }
}
