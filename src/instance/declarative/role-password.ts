import { annotations } from "../../api/labels.ts";
import type { WantedRole } from "../../plan/instance/managed-roles.ts";
import type { Random } from "../../ports/clock.ts";
import type { RolePassword } from "../../postgres/role-sql.ts";
import { encodeScramPassword, isEncodedPassword, scramSaltBytes } from "../../postgres/scram.ts";
import { type SecretRead, secretText } from "../secret-reader.ts";

/** What a role's password is to become, and of which version of its Secret; `undefined` leaves it as it is. */
export function rolePassword(
  role: Pick<WantedRole, "name" | "passwordSecret" | "disablePassword">,
  read: SecretRead | undefined,
  random: Random,
): { password: RolePassword; version: string } | undefined {
  if (role.disablePassword) {
    if (role.passwordSecret) throw new Error(`cannot reconcile: password both provided and disabled: ${role.name}`);
    return { password: { kind: "none" }, version: "" };
  }
  if (!role.passwordSecret) return undefined;
  const { name } = role.passwordSecret;
  if (read?.kind !== "found") {
    const why = read?.kind === "unavailable" ? read.reason : (read?.kind ?? "not read");
    throw new Error(`failed to get password secret ${name}: ${why}`);
  }
  const username = secretText(read.secret, "username")?.trim();
  const password = secretText(read.secret, "password")?.trim();
  if (username === undefined) throw new Error("username key doesn't exist inside the secret");
  if (password === undefined) throw new Error("password key doesn't exist inside the secret");
  if (username !== role.name) {
    throw new Error(`the username in secret ${JSON.stringify(name)} does not match role ${JSON.stringify(role.name)}`);
  }
  const passthrough = read.secret.metadata.annotations?.[annotations.passwordPassthrough] === "enabled";
  const stored =
    passthrough || isEncodedPassword(password) ? password : encodeScramPassword(password, random.bytes(scramSaltBytes));
  return { password: { kind: "set", stored }, version: read.secret.metadata.resourceVersion ?? "" };
}
