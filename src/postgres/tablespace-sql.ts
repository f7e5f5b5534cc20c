import { quoteIdentifier, quoteLiteral } from "./identifiers.ts";

/** Text of CREATE TABLESPACE; the server takes it outside of transactions only. */
export function createTablespace(name: string, owner: string, location: string): string {
  return `CREATE TABLESPACE ${quoteIdentifier(name)} OWNER ${quoteIdentifier(owner)} LOCATION ${quoteLiteral(location)}`;
}

export function changeTablespaceOwner(name: string, owner: string): string {
  return `ALTER TABLESPACE ${quoteIdentifier(name)} OWNER TO ${quoteIdentifier(owner)}`;
}
