import { expect, test } from "vitest";
import type { DatabaseRole } from "../../../../src/api/generated/databaserole.ts";
import type { ObservedCertificate } from "../../../../src/build/certificates.ts";
import { type ObservedRole, planDatabaseRole } from "../../../../src/plan/database-role/plan-database-role.ts";

const now = new Date("2030-01-01T00:00:00Z");
const day = 86_400_000;

const valid: ObservedCertificate = {
  kind: "present",
  notBefore: now.getTime() - day,
  notAfter: now.getTime() + 60 * day,
  dnsNames: [],
  hasKey: true,
};

const role = (spec: Partial<DatabaseRole["spec"]>, status?: DatabaseRole["status"]): DatabaseRole => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "DatabaseRole",
  metadata: { name: "role-dante", namespace: "shop" },
  spec: { cluster: { name: "c" }, name: "dante", login: true, ...spec },
  ...(status ? { status } : {}),
});

const seen = (change: Partial<ObservedRole> = {}): ObservedRole => ({
  passwordVersion: undefined,
  authority: { name: "c-ca", found: valid },
  certificate: { isOurs: false, found: { kind: "absent" } },
  expiringThresholdDays: 7,
  ...change,
});

const wanted = { clientCertificate: {} };
const ours = (found: ObservedCertificate) => ({ certificate: { isOurs: true, found } });

test.each<[string, Partial<DatabaseRole["spec"]>, Partial<ObservedRole>, string, object | undefined]>([
  ["no certificate is asked for", {}, {}, "leave", undefined],
  ["one is asked for", wanted, {}, "create", undefined],
  ["it is there", wanted, ours(valid), "leave", { expiration: "2030-03-02T00:00:00Z" }],
  ["it ends soon", wanted, ours({ ...valid, notAfter: now.getTime() + 6 * day }), "renew", undefined],
  ["its authority is another", wanted, ours({ ...valid, problem: "not signed by" }), "renew", undefined],
  ["it cannot be read", wanted, ours({ kind: "unreadable", reason: "no tls.key" }), "replace", undefined],
  ["there is no cluster yet", wanted, { authority: undefined }, "leave", undefined],
  ["it is switched off", { clientCertificate: { enabled: false } }, ours(valid), "delete", undefined],
  [
    "somebody else's Secret has the name",
    wanted,
    { certificate: { isOurs: false, found: valid } },
    "leave",
    { message: 'Secret "role-dante-client-cert" already exists and is not owned by this DatabaseRole' },
  ],
  [
    "the authority cannot sign",
    wanted,
    { authority: { name: "own-ca", found: { ...valid, hasKey: false } } },
    "leave",
    {
      message:
        'client CA secret "own-ca" has no private key; bring-your-own-CA clusters require manual certificate management',
    },
  ],
])("certificate: %s", (_name, spec, observed, action, status) => {
  const plan = planDatabaseRole(role(spec), seen(observed), now);
  expect([plan.certificate, plan.status.clientCertificate]).toEqual([action, status]);
});

test("a foreign Secret is told of once the certificate is switched off, and not where there was none", () => {
  const foreign = seen({ certificate: { isOurs: false, found: valid } });
  const off = { clientCertificate: { enabled: false } };
  expect(planDatabaseRole(role({}), foreign, now).status.clientCertificate).toBeUndefined();
  const told = planDatabaseRole(role(off, { clientCertificate: { message: "x" } }), foreign, now);
  expect(told).toMatchObject({
    certificate: "leave",
    status: {
      clientCertificate: {
        message:
          'Secret "role-dante-client-cert" is not owned by this DatabaseRole and will not be deleted automatically',
      },
    },
  });
});

test("the version of the password Secret is put into a condition, and only a new one changes it", () => {
  const first = planDatabaseRole(role({}), seen({ passwordVersion: "7" }), now).status.conditions;
  expect(first).toEqual([
    {
      type: "PasswordSecretChange",
      status: "True",
      reason: "ChangeDetected",
      message: "7",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    },
  ]);
  const told = role({}, { conditions: first ?? [] });
  const later = new Date(now.getTime() + day);
  expect(planDatabaseRole(told, seen({ passwordVersion: "7" }), later).status.conditions).toBe(told.status?.conditions);
  expect(planDatabaseRole(told, seen({ passwordVersion: "9" }), later).status.conditions?.[0]?.message).toBe("9");
  expect(planDatabaseRole(told, seen(), later).status.conditions).toBe(told.status?.conditions);
});
