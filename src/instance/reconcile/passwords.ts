import { secretNames } from "../../api/cluster-facts.ts";
import { roles } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Secret } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { resources } from "../../kube/resources.ts";
import {
  applicationPasswordUser,
  isDeclaredPassword,
  type PasswordWish,
  passwordVersion,
  planPasswords,
} from "../../plan/instance/passwords.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import { encodeScramPassword, isEncodedPassword, scramSaltBytes } from "../../postgres/scram.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import { type SecretReader, secretText } from "../secret-reader.ts";

/** Neither a failing nor a slow statement may bring the password, or its hash, into the log. */
export const silentSettings = [
  "log_statement = 'none'",
  "log_min_error_statement = 'PANIC'",
  "log_min_duration_statement = -1",
  "log_min_duration_sample = -1",
  "log_duration = off",
];

/** What a Secret says of a user's password, or why it says nothing: one that names somebody else is not for this user. */
export function secretWish(user: string, secret: Secret): PasswordWish | string {
  const username = secretText(secret, "username");
  if (username !== undefined && username.trim() !== user) {
    return `wrong username ${JSON.stringify(username)} in the Secret, expected ${JSON.stringify(user)}`;
  }
  const password = secretText(secret, "password");
  if (password === undefined) return "has no key password";
  return {
    kind: "secret",
    user,
    password,
    passthrough: secret.metadata.annotations?.[annotations.passwordPassthrough] === "enabled",
    version: secret.metadata.resourceVersion ?? "",
  };
}

/** Keeps the passwords of the superuser and of the application owner as their Secrets say. */
export class PasswordStep {
  readonly #context: InstanceContext;
  readonly #secrets: SecretReader;
  readonly #applied = new Map<string, string>();

  constructor(context: InstanceContext, secrets: SecretReader) {
    this.#context = context;
    this.#secrets = secrets;
  }

  /** What was applied counts for one stay as primary: another primary may have changed it since. */
  forget(): void {
    this.#applied.clear();
  }

  async #wishes(cluster: Cluster, signal: AbortSignal): Promise<PasswordWish[]> {
    const names = secretNames(cluster);
    const wishes: PasswordWish[] = [];
    const add = async (user: string, name: string) => {
      const read = await this.#secrets.read(name, signal);
      const wish = read.kind === "found" ? secretWish(user, read.secret) : read.kind;
      if (typeof wish === "object") wishes.push(wish);
      else this.#context.logger.warning("A password is left as it is", { user, secret: name, reason: wish });
    };
    if (cluster.spec.enableSuperuserAccess) await add(roles.superuser, names.superuser);
    else wishes.push({ kind: "none", user: roles.superuser });
    const owner = applicationPasswordUser(cluster);
    if (owner) await add(owner, names.app);
    return wishes;
  }

  async reconcile(cluster: Cluster, signal: AbortSignal): Promise<void> {
    const wishes = await this.#wishes(cluster, signal);
    for (const wish of planPasswords({ canWrite: true, wishes, applied: this.#applied })) {
      const isDone = (await this.#isDeclared(cluster, wish, signal)) || (await this.#apply(wish));
      if (isDone) this.#applied.set(wish.user, passwordVersion(wish));
    }
  }

  /** Asked only when there is something to apply: the objects of all roles are read for it. */
  async #isDeclared(cluster: Cluster, { user }: PasswordWish, signal: AbortSignal): Promise<boolean> {
    if (user === roles.superuser) return false;
    const { namespace } = this.#context.settings;
    const declared = await this.#context.kube
      .list(resources.databaseRoles, { namespace, signal })
      .catch((error: unknown) => {
        // An operator that knows no such objects gives no right to them either.
        if (isKubeError(error, "forbidden") || isKubeError(error, "notFound")) return [];
        throw error;
      });
    if (!isDeclaredPassword(cluster, user, declared)) return false;
    this.#context.logger.info("The password of a role is left to the object that declares it", { user });
    return true;
  }

  async #apply(wish: PasswordWish): Promise<boolean> {
    const context = this.#context;
    const role = quoteIdentifier(wish.user);
    return withSession(context, "postgres", async (session) => {
      const [known] = await session.query("SELECT rolpassword IS NULL AS empty FROM pg_authid WHERE rolname = $1", [
        wish.user,
      ]);
      if (!known) {
        context.logger.warning("The role whose password is to be set does not exist", { user: wish.user });
        return false;
      }
      if (wish.kind === "none") {
        if (known["empty"] !== true) await session.query(`ALTER ROLE ${role} WITH PASSWORD NULL`);
        return true;
      }
      const asIs = wish.passthrough || isEncodedPassword(wish.password);
      const password = asIs ? wish.password : encodeScramPassword(wish.password, context.random.bytes(scramSaltBytes));
      await session.query("BEGIN");
      for (const setting of silentSettings) await session.query(`SET LOCAL ${setting}`);
      await session.query(`ALTER ROLE ${role} WITH PASSWORD ${quoteLiteral(password)}`);
      await session.query("COMMIT");
      context.logger.info("Updated the password of a role", { user: wish.user });
      return true;
    });
  }
}
