import { quoteIdentifier, quoteLiteral } from "./identifiers.ts";

/** What a role is to be, without its password and memberships. */
export interface RoleAttributes {
  bypassrls: boolean;
  createdb: boolean;
  createrole: boolean;
  inherit: boolean;
  login: boolean;
  replication: boolean;
  superuser: boolean;
  /** -1 means no limit. */
  connectionLimit: number;
}

/** What becomes of a role's password; absent leaves it as it is. */
export type RolePassword = { kind: "none" } | { kind: "set"; stored: string };

/** Options beside the attributes. */
export interface RoleOptions {
  attributes: RoleAttributes;
  /** Memberships given at creation. */
  inRoles?: readonly string[];
  password?: RolePassword;
  /** Text of a time, or `infinity`; absent leaves it as it is. */
  validUntil?: string;
}

const switches = ["bypassrls", "createdb", "createrole", "inherit", "login", "replication", "superuser"] as const;

function optionText({ attributes, inRoles = [], password, validUntil }: RoleOptions): string {
  const words = switches.map((name) => (attributes[name] ? "" : "NO") + name.toUpperCase());
  words.push(`CONNECTION LIMIT ${attributes.connectionLimit}`);
  if (inRoles.length > 0) words.push(`IN ROLE ${inRoles.map(quoteIdentifier).join(", ")}`);
  if (password) words.push(password.kind === "none" ? "PASSWORD NULL" : `PASSWORD ${quoteLiteral(password.stored)}`);
  if (validUntil !== undefined) words.push(`VALID UNTIL ${quoteLiteral(validUntil)}`);
  return words.join(" ");
}

export function createRole(name: string, options: RoleOptions): string {
  return `CREATE ROLE ${quoteIdentifier(name)} WITH ${optionText(options)}`;
}

export function alterRole(name: string, options: Omit<RoleOptions, "inRoles">): string {
  return `ALTER ROLE ${quoteIdentifier(name)} WITH ${optionText(options)}`;
}

export function commentOnRole(name: string, comment: string): string {
  return `COMMENT ON ROLE ${quoteIdentifier(name)} IS ${quoteLiteral(comment)}`;
}

/** Statements that bring memberships from `current` to `wanted`. */
export function changeMemberships(name: string, current: readonly string[], wanted: readonly string[]): string[] {
  const role = quoteIdentifier(name);
  return [
    ...wanted.filter((group) => !current.includes(group)).map((group) => `GRANT ${quoteIdentifier(group)} TO ${role}`),
    ...current
      .filter((group) => !wanted.includes(group))
      .map((group) => `REVOKE ${quoteIdentifier(group)} FROM ${role}`),
  ];
}
