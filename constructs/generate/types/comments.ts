/** Puts each comment of one sentence on one line. */
export function shortenComments(source: string): string {
  return source.replace(/\/\*\*\n\s*\* ([^\n]*)\n\s*\*\//g, "/** $1 */");
}
