import { roles } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";

const searchBody = "SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename=$1;";
const searchPath = "search_path=pg_catalog, pg_temp";

/** Makes sure that poolers can look up passwords, once a Pooler asks for it (reference: instance manager §4.1 step 32). */
export async function ensurePoolerAuth(context: InstanceContext, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const secrets = cluster.status?.poolerIntegrations?.pgBouncerIntegration?.secrets ?? [];
  if (secrets.length === 0) return;
  const role = quoteIdentifier(roles.pooler);
  await withSession(
    context,
    "postgres",
    async (session) => {
      const [known] = await session.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [roles.pooler]);
      const [search] = await session.query(
        `SELECT p.prosrc AS body, p.prosecdef AS definer, p.proconfig::text[] AS config
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'public' AND p.proname = 'user_search'`,
      );
      const config = Array.isArray(search?.["config"]) ? search["config"].map(String) : [];
      const good = search?.["body"] === searchBody && search["definer"] === true && config.includes(searchPath);
      if (known && good) return;
      await session.query("BEGIN");
      if (!known) {
        await session.query(`CREATE ROLE ${role} LOGIN`);
        await session.query(`GRANT CONNECT ON DATABASE postgres TO ${role}`);
      }
      await session.query(
        `CREATE OR REPLACE FUNCTION public.user_search(uname TEXT) RETURNS TABLE (usename name, passwd text)
       LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS '${searchBody}'`,
      );
      await session.query("REVOKE ALL ON FUNCTION public.user_search(text) FROM public");
      await session.query(`GRANT EXECUTE ON FUNCTION public.user_search(text) TO ${role}`);
      await session.query("COMMIT");
      context.logger.info("Prepared the authentication of poolers");
    },
    { signal },
  );
}
