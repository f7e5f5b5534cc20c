import { boolean, dateTime, type Fields, integer, required, string, stringList } from "../parts/builders.ts";
import { nameReference } from "./references.ts";
import { ensure } from "./words.ts";

/** A role of PostgreSQL, written in the cluster or as an object of its own. */
export const roleFields: Fields = {
  bypassrls: boolean("Whether row-level security is bypassed."),
  comment: string("Comment put on the role."),
  connectionLimit: integer("Concurrent connections allowed; -1 for no limit.", { bits: 64, default: -1 }),
  createdb: boolean("Whether the role may create databases."),
  createrole: boolean("Whether the role may create, alter and drop roles."),
  disablePassword: boolean("Set the password to NULL in PostgreSQL."),
  ensure,
  inRoles: stringList("Roles that this role is made a member of."),
  inherit: boolean("Whether the role has the privileges of the roles that it is a member of.", { default: true }),
  login: boolean("Whether the role may log in."),
  name: required(string("Name of the role.")),
  passwordSecret: nameReference("Secret with username and password; without it the password is left alone."),
  replication: boolean("Whether the role may open replication connections."),
  superuser: boolean("Whether the role is a superuser."),
  validUntil: dateTime("When the password stops being valid; never by default."),
};
