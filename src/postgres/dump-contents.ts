/** Names of the extensions that a dump brings, from the lines in which `pg_restore --list` tells its contents. */
export function dumpedExtensions(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    // Number; table and row of the catalog; kind, schema, name, owner: an extension has neither schema nor owner.
    const name = /^\d+; \d+ \d+ EXTENSION - (\S.*?)\s*$/.exec(line)?.[1];
    return name === undefined ? [] : [name];
  });
}
