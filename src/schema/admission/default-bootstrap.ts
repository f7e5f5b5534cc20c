import type { Cluster } from "../../api/generated/cluster.ts";

/** Fills the bootstrap section in use, or makes an initdb one when there is none. */
export function defaultBootstrap(spec: Cluster["spec"]): void {
  const bootstrap = spec.bootstrap ?? {};
  if (bootstrap.recovery) defaultApplication(bootstrap.recovery);
  if (bootstrap.pg_basebackup) defaultApplication(bootstrap.pg_basebackup);
  if (!bootstrap.recovery && !bootstrap.pg_basebackup) {
    const initdb = bootstrap.initdb ?? {};
    // A monolith import brings databases and roles of its own.
    if (initdb.import?.type !== "monolith") initdb.database ||= "app";
    if (initdb.database) initdb.owner ||= initdb.database;
    initdb.encoding ||= "UTF8";
    initdb.localeCollate ||= "C";
    initdb.localeCType ||= "C";
    bootstrap.initdb = initdb;
  }
  spec.bootstrap = bootstrap;
}

function defaultApplication(section: { database?: string; owner?: string }): void {
  section.database ||= "app";
  section.owner ||= section.database;
}
