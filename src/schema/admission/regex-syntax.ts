/**
 * Whether a regular expression is one that linear-time engines take: what JavaScript compiles, without look-around and
 * back references.
 */
export function isSafePattern(pattern: string): boolean {
  if (hasUnsafeConstruct(pattern)) return false;
  try {
    new RegExp(toJavaScript(pattern));
    return true;
  } catch {
    return false;
  }
}

function hasUnsafeConstruct(pattern: string): boolean {
  const bare = pattern.replace(/\\\\/g, "");
  return /\(\?(=|!|<=|<!)/.test(bare) || /\\[1-9]/.test(bare) || /\\k</.test(bare);
}

/** Spells the few constructs that differ between the two dialects. */
function toJavaScript(pattern: string): string {
  return pattern
    .replace(/\(\?P</g, "(?<")
    .replace(/\(\?[imsU]+\)/g, "")
    .replace(/\(\?[imsU-]+:/g, "(?:");
}
