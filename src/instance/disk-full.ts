/** Whether an error says, itself or by its cause, that no space or quota is left. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") return true;
  }
  return false;
}
