/** A failure the user can act on. */
export class UserError extends Error {
  override name = "UserError";
}

/** Runs a command's main function; a failure becomes its message and exit code 1. */
export async function runMain(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${describeFailure(error)}\n`);
    process.exitCode = 1;
  }
}

/** The message alone; a mistake in our own code, which nobody can act on without it, also shows where it happened. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isMistake = [TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind);
  return isMistake ? (error.stack ?? error.message) : error.message;
}
