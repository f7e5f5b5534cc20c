/** Asks again and again until the answer is not `undefined` or false; fails with the last state after the time-out. */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined | false>,
  describe: () => Promise<string> = async () => "",
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let lastError = "";
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      lastError = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() > deadline) {
      const state = await describe().catch((error: unknown) => String(error));
      throw new Error(`${what}: not within ${timeoutMs / 1000} s. ${lastError}\n${state}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
