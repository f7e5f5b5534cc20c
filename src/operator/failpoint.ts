/** Called after each executed action with its name; tests end the process or throw here. */
export type Failpoint = (action: string) => void;

/** Name that stands for every action that writes to the API server. */
const anyWrite = "anyWrite";
const notWrites = new Set(["event", "sendManager", "forgetManager"]);

/** Whether an action of that name writes to the API server. */
export function isWrite(action: string): boolean {
  return !notWrites.has(action);
}

/**
 * Reads `<action>:<n>` and returns a failpoint that ends the process right after the n-th action of that name (or of any
 * name that writes, for `anyWrite`), without any clean-up, as a crash would. Without a readable text it does nothing.
 */
export function parseFailpoint(text: string | undefined, exit: (code: number) => void): Failpoint {
  const match = /^([A-Za-z]+):([1-9][0-9]*)$/.exec(text ?? "");
  if (!match) return () => undefined;
  const [, name, count] = match;
  let left = Number(count);
  return (action) => {
    const counts = name === anyWrite ? isWrite(action) : action === name;
    if (!counts) return;
    left -= 1;
    if (left === 0) exit(86);
  };
}
