import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import { resources } from "../../kube/resources.ts";
import { passwordSecretVersion, roleRefusal } from "../../plan/instance/database-role.ts";
import { wantedOptions } from "../../plan/instance/managed-roles.ts";
import type { ResourceType } from "../../ports/kube-api.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { alterRole, changeMemberships, commentOnRole, createRole } from "../../postgres/role-sql.ts";
import { silentSettings } from "../reconcile/passwords.ts";
import type { SecretRead } from "../secret-reader.ts";
import { type ApplyDeps, type ApplyResult, type Declared, type DeclaredKind, inDatabase } from "./declared-kind.ts";
import { findDriftOfRole } from "./drift.ts";
import { rolePassword } from "./role-password.ts";
import { readRoles } from "./role-rows.ts";
import { step } from "./step.ts";
import { inTransaction } from "./transaction.ts";

type Spec = DatabaseRole["spec"];

/** The operator has yet to let the instances read a Secret that was just named: how soon to ask again, in milliseconds. */
const accessPauseMs = 2_000;

/** DatabaseRoles (reference: declarative objects §1.4). */
export const databaseRoles: DeclaredKind = {
  type: resources.databaseRoles as ResourceType<Declared>,
  finalizer: "cnpg.io/deleteRole",
  reclaim: (object) => (object as DatabaseRole).spec.databaseRoleReclaimPolicy ?? "retain",
  renewal: (object) => passwordSecretVersion(object as DatabaseRole),
  isRenewed(object) {
    const { spec, status } = object as DatabaseRole;
    return !spec.passwordSecret || status?.secretResourceVersion === passwordSecretVersion(object as DatabaseRole);
  },
  refusal: (object, cluster) => roleRefusal(object as DatabaseRole, cluster),
  findDrift: (object, deps) => findDriftOfRole(object as DatabaseRole, deps),
  async apply(object, deps) {
    const { spec } = object as DatabaseRole;
    const read = await readSecret(spec, deps);
    if (read && read.kind !== "found") return unread(spec, read);
    const secret = await step("while getting the role password", async () =>
      rolePassword(spec, read, deps.context.random),
    );
    await inDatabase(deps, "postgres", async (session) => {
      const known = (await readRoles(session)).find(({ name }) => name === spec.name);
      const options = wantedOptions(spec, known, secret?.password);
      const comment =
        (spec.comment ?? "") === (known?.comment ?? "") ? [] : [commentOnRole(spec.name, spec.comment ?? "")];
      const statements = known
        ? [
            ...changeMemberships(spec.name, known.inRoles, spec.inRoles ?? []),
            alterRole(spec.name, options),
            ...comment,
          ]
        : [createRole(spec.name, { ...options, inRoles: spec.inRoles ?? [] }), ...comment];
      await inTransaction(session, [...silentSettings.map((setting) => `SET LOCAL ${setting}`), ...statements]);
    });
    return { status: { secretResourceVersion: secret?.version || undefined } };
  },
  async drop(object, deps) {
    const { name } = object.spec;
    await inDatabase(deps, "postgres", (session) =>
      step(`while dropping role ${JSON.stringify(name)}`, () =>
        session.query(`DROP ROLE IF EXISTS ${quoteIdentifier(name)}`),
      ),
    );
  },
};

async function readSecret(spec: Spec, { secrets, signal }: ApplyDeps): Promise<SecretRead | undefined> {
  if (!spec.passwordSecret || spec.disablePassword) return undefined;
  // What is remembered may be the version that this pass is to replace.
  secrets.forget(spec.passwordSecret.name);
  return secrets.read(spec.passwordSecret.name, signal);
}

function unread(spec: Spec, read: Exclude<SecretRead, { kind: "found" }>): ApplyResult {
  const secret = `secrets ${JSON.stringify(spec.passwordSecret?.name)}`;
  switch (read.kind) {
    case "missing":
      return { failed: `${secret} not found`, retryAfterMs: accessPauseMs };
    case "forbidden":
      return { failed: `${secret} is forbidden: the instances may not read it yet`, retryAfterMs: accessPauseMs };
    case "unavailable":
      return { failed: `${secret}: ${read.reason}`, retryAfterMs: accessPauseMs };
  }
}
