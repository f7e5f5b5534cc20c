/** Where progress lines go; always stderr, so that stdout stays clean for JSON. */
export type Report = (line: string) => void;

export const reportToStderr: Report = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Longest time a step may run without a line saying that it still does. */
const heartbeatMs = 15_000;

/** Runs one step, saying what it does and about how long it takes, and how long it took when that was over two seconds. */
export async function step<T>(report: Report, what: string, about: string, run: () => Promise<T>): Promise<T> {
  report(`→ ${what}${about === "" ? "" : ` (${about})`}`);
  const start = Date.now();
  const seconds = () => Math.round((Date.now() - start) / 1000);
  // Steps run side by side, so each line names its step.
  const timer = setInterval(() => report(`… ${what}: ${seconds()} s so far`), heartbeatMs);
  try {
    const result = await run();
    if (seconds() >= 2) report(`✓ ${what}: ${seconds()} s`);
    return result;
  } finally {
    clearInterval(timer);
  }
}
