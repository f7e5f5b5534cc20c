/** Whether an error says, itself or by its cause, that no space or quota is left. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") return true;
  }
  return false;
}

/** The error of a program that ended for want of space; `undefined` when its output tells no such thing. */
export function diskFullError(message: string, lines: readonly string[]): Error | undefined {
  if (!lines.some((line) => /No space left on device|Disk quota exceeded/.test(line))) return undefined;
  return Object.assign(new Error(message), { code: "ENOSPC" });
}
