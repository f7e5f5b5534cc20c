import type { SqlSession } from "../../ports/sql-session.ts";

/** Runs statements so that all of them count or none. */
export async function inTransaction(session: SqlSession, statements: readonly string[]): Promise<void> {
  await session.query("BEGIN");
  try {
    for (const statement of statements) await session.query(statement);
    await session.query("COMMIT");
  } catch (error) {
    await session.query("ROLLBACK");
    throw error;
  }
}
