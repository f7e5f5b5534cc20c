import { applicationDatabase } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import { roleRefusal } from "./database-role.ts";

/** What a user's password is to become. */
export type PasswordWish =
  /** Take it from the secret; `passthrough` sends the text as it is. */
  | { kind: "secret"; user: string; password: string; passthrough: boolean; version: string }
  /** No password at all. */
  | { kind: "none"; user: string };

/** Versions applied already, by user; the version of "no password" is empty. */
export type AppliedPasswords = ReadonlyMap<string, string>;

export function passwordVersion(wish: PasswordWish): string {
  return wish.kind === "none" ? "" : wish.version;
}

/** The wishes that are not applied yet; only a primary that may write acts on them. */
export function planPasswords(view: {
  canWrite: boolean;
  wishes: readonly PasswordWish[];
  applied: AppliedPasswords;
}): PasswordWish[] {
  if (!view.canWrite) return [];
  return view.wishes.filter((wish) => view.applied.get(wish.user) !== passwordVersion(wish));
}

/**
 * The user whose password the application's Secret decides. One that is also a managed role with a password, or with none, is that
 * role's matter: of two sources the same one has to win each time.
 */
export function applicationPasswordUser(cluster: Cluster): string | undefined {
  const owner = applicationDatabase(cluster)?.owner;
  const role = cluster.spec.managed?.roles?.find(({ name }) => name === owner);
  return role?.passwordSecret || role?.disablePassword ? undefined : owner;
}

/** The same of a role that is declared by an object of its own: whether that one, once applied, decides the user's password. */
export function isDeclaredPassword(cluster: Cluster, user: string, declared: readonly DatabaseRole[]): boolean {
  return declared.some((role) => {
    const { spec, status, metadata } = role;
    if (spec.cluster.name !== cluster.metadata.name || spec.name !== user || metadata.deletionTimestamp) return false;
    if (!spec.passwordSecret && !spec.disablePassword) return false;
    return status?.applied === true && roleRefusal(role, cluster) === undefined;
  });
}
