/** Called after each executed action with its name; tests end the process or throw here. */
export type Failpoint = (action: string) => void;

/**
 * Reads `<action>:<n>` and returns a failpoint that ends the process right after the n-th action of that name, without
 * any clean-up, as a crash would. Returns one that does nothing when the text is absent.
 */
export function parseFailpoint(text: string | undefined, exit: (code: number) => void): Failpoint {
  const match = /^([A-Za-z]+):([1-9][0-9]*)$/.exec(text ?? "");
  if (!match) return () => undefined;
  const [, name, count] = match;
  let left = Number(count);
  return (action) => {
    if (action !== name) return;
    left -= 1;
    if (left === 0) exit(86);
  };
}
