import type { SqlSession } from "../../ports/sql-session.ts";

const insufficientPrivilege = "42501";
/** Beyond the segment's end, for the headers of pages and of the record itself. */
const marginBytes = 8192;

/**
 * Makes a primary close its current WAL segment. A role that may not switch, such as the one standbys stream with, fills the
 * segment up instead, by a message that nobody reads; what is left of a segment is stored compressed.
 */
export async function switchWal(session: SqlSession): Promise<void> {
  try {
    await session.query("SELECT pg_switch_wal()");
  } catch (error) {
    if ((error as { code?: unknown }).code !== insufficientPrivilege) throw error;
    await session.query(
      `SELECT pg_logical_emit_message(false, 'cnpg-ts', repeat('0',
                (size - mod(pg_current_wal_insert_lsn() - '0/0'::pg_lsn, size) + $1)::int)) IS NOT NULL
         FROM (SELECT pg_size_bytes(current_setting('wal_segment_size'))::numeric AS size) AS segment`,
      [marginBytes],
    );
  }
}
