import type { Database } from "../../api/generated/database.ts";
import type { Publication } from "../../api/generated/publication.ts";
import type { Subscription } from "../../api/generated/subscription.ts";
import { resources } from "../../kube/resources.ts";
import { refuseDatabase } from "../../plan/instance/declarative.ts";
import type { ResourceType } from "../../ports/kube-api.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { buildExternalConninfo, findExternalCluster } from "../../postgres/conninfo.ts";
import {
  alterDatabase,
  alterPublication,
  createDatabase,
  createPublication,
  sortedParameters,
} from "../../postgres/declarative-sql.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import { writeExternalFiles } from "../external-servers.ts";
import { relocate } from "../instance-paths.ts";
import { applyDatabaseContents, noContents } from "./database-contents.ts";
import { databaseRoles } from "./database-role.ts";
import { type ApplyDeps, type Declared, type DeclaredKind, inDatabase } from "./declared-kind.ts";
import { findDriftOfDatabase, findMissing } from "./drift.ts";
import { step } from "./step.ts";

/** What a statement may take that copies or moves a database, or makes an extension, in milliseconds. */
const copyLimitMs = 600_000;
/** The same of one that waits for another server to see the end of its open transactions. */
const remoteLimitMs = 120_000;

const exists = async (session: SqlSession, catalog: string, column: string, name: string): Promise<boolean> =>
  (await session.query(`SELECT 1 FROM pg_catalog.${catalog} WHERE ${column} = $1`, [name])).length > 0;

async function dropDatabase(name: string, deps: ApplyDeps): Promise<void> {
  const sql = `DROP DATABASE IF EXISTS ${quoteIdentifier(name)}`;
  const drop = (session: SqlSession) =>
    step(`while dropping database ${JSON.stringify(name)}`, () => session.query(sql));
  await inDatabase(deps, "postgres", drop, copyLimitMs);
}

const databases: DeclaredKind = {
  type: resources.databases as ResourceType<Declared>,
  finalizer: "cnpg.io/deleteDatabase",
  reclaim: (object) => (object as Database).spec.databaseReclaimPolicy ?? "retain",
  refusal: (object) => refuseDatabase(object as Database),
  findDrift: (object, deps) => findDriftOfDatabase(object as Database, deps),
  async apply(object, deps) {
    const { spec } = object as Database;
    const name = JSON.stringify(spec.name);
    if (spec.ensure === "absent") {
      await dropDatabase(spec.name, deps);
      return {};
    }
    const bringInLine = async (session: SqlSession) => {
      const known = await step(`while detecting the database ${name}`, () =>
        exists(session, "pg_database", "datname", spec.name),
      );
      if (!known) await step(`while creating database ${name}`, () => session.query(createDatabase(spec)));
      else for (const { sql, what } of alterDatabase(spec)) await step(what, () => session.query(sql));
    };
    await inDatabase(deps, "postgres", bringInLine, copyLimitMs);
    const { schemas, extensions, fdws, servers } = spec;
    if (![schemas, extensions, fdws, servers].some((list) => list?.length)) return { status: noContents };
    let connected = false;
    try {
      const work = (session: SqlSession) => {
        connected = true;
        return applyDatabaseContents(session, spec);
      };
      const contents = await inDatabase(deps, spec.name, work, copyLimitMs);
      return contents.failed
        ? { status: contents.status, failed: "database object reconciliation failed" }
        : { status: contents.status };
    } catch (error) {
      if (connected) throw error;
      return step(`while connecting to the database ${name}`, () => Promise.reject(error));
    }
  },
  drop: (object, deps) => dropDatabase(object.spec.name, deps),
};

const publications: DeclaredKind = {
  type: resources.publications as ResourceType<Declared>,
  finalizer: "cnpg.io/deletePublication",
  reclaim: (object) => (object as Publication).spec.publicationReclaimPolicy ?? "retain",
  findDrift: (object, deps) =>
    findMissing(
      "publication",
      object as Publication,
      "SELECT 1 FROM pg_catalog.pg_publication WHERE pubname = $1",
      deps,
    ),
  async apply(object, deps) {
    const { spec } = object as Publication;
    await inDatabase(deps, spec.dbname, async (session) => {
      if (!(await exists(session, "pg_publication", "pubname", spec.name))) {
        await step("while creating publication", () => session.query(createPublication(spec)));
      } else {
        for (const sql of alterPublication(spec)) await step("while patching publication", () => session.query(sql));
      }
    });
    return {};
  },
  async drop(object, deps) {
    const { spec } = object as Publication;
    await inDatabase(deps, spec.dbname, (session) =>
      step("while dropping publication", () =>
        session.query(`DROP PUBLICATION IF EXISTS ${quoteIdentifier(spec.name)}`),
      ),
    );
  },
};

const updatable = new Set(
  "slot_name synchronous_commit binary streaming disable_on_error password_required run_as_owner origin failover".split(
    " ",
  ),
);

const subscriptionSql = `SELECT 1 FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
  WHERE s.subname = $1 AND d.datname = pg_catalog.current_database()`;

const subscriptions: DeclaredKind = {
  type: resources.subscriptions as ResourceType<Declared>,
  finalizer: "cnpg.io/deleteSubscription",
  reclaim: (object) => (object as Subscription).spec.subscriptionReclaimPolicy ?? "retain",
  findDrift: (object, deps) => findMissing("subscription", object as Subscription, subscriptionSql, deps),
  async apply(object, deps) {
    const { spec } = object as Subscription;
    const server = findExternalCluster(deps.cluster, spec.externalClusterName);
    if (!server) {
      throw new Error(
        `externalCluster '${spec.externalClusterName}' not declared in cluster ${deps.cluster.metadata.name}`,
      );
    }
    await writeExternalFiles(deps.context, server, deps.secrets, deps.signal);
    const overrides = spec.publicationDBName ? { dbname: spec.publicationDBName } : {};
    const conninfo = quoteLiteral(relocate(deps.context.settings, buildExternalConninfo(server, overrides)));
    const name = quoteIdentifier(spec.name);
    const publication = quoteIdentifier(spec.publicationName);
    const bringInLine = async (session: SqlSession) => {
      const [known] = await session.query(subscriptionSql, [spec.name]);
      if (!known) {
        const options = sortedParameters(spec.parameters);
        const sql = `CREATE SUBSCRIPTION ${name} CONNECTION ${conninfo} PUBLICATION ${publication}${options ? ` WITH (${options})` : ""}`;
        await step("while creating subscription", () => session.query(sql));
        return;
      }
      const [version] = await session.query("SELECT pg_catalog.current_setting('server_version_num')::int AS number");
      const may = (key: string) =>
        updatable.has(key) || (key === "two_phase" && Number(version?.["number"]) >= 180_000);
      const options = sortedParameters(
        Object.fromEntries(Object.entries(spec.parameters ?? {}).filter(([key]) => may(key))),
      );
      const statements = [`SET PUBLICATION ${publication}`, `CONNECTION ${conninfo}`];
      if (options) statements.push(`SET (${options})`);
      for (const change of statements) {
        await step("while patching subscription", () => session.query(`ALTER SUBSCRIPTION ${name} ${change}`));
      }
    };
    await inDatabase(deps, spec.dbname, bringInLine, remoteLimitMs);
    return {};
  },
  async drop(object, deps) {
    const { spec } = object as Subscription;
    const sql = `DROP SUBSCRIPTION IF EXISTS ${quoteIdentifier(spec.name)}`;
    const drop = (session: SqlSession) => step("while dropping subscription", () => session.query(sql));
    await inDatabase(deps, spec.dbname, drop, remoteLimitMs);
  },
};

export const declaredKinds: readonly DeclaredKind[] = [databases, databaseRoles, publications, subscriptions];
