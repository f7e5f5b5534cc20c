/** A failure the user can act on: shown as its message alone, without a stack trace. */
export class UserError extends Error {
  override name = "UserError";
}

/** Runs a command's main function; a UserError becomes one line and exit code 1. */
export async function runMain(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${error instanceof UserError ? error.message : describe(error)}\n`);
    process.exitCode = 1;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
