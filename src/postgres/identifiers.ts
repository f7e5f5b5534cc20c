/** Quotes a name for SQL text. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text for SQL, whatever `standard_conforming_strings` says. */
export function quoteLiteral(value: string): string {
  const quoted = `'${value.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;
  return value.includes("\\") ? ` E${quoted}` : quoted;
}
