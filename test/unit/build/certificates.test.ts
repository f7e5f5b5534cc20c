import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import {
  buildAuthoritySecret,
  buildLeafSecret,
  buildOperatorSecret,
  renewalPatch,
} from "../../../src/build/certificate-secrets.ts";
import { type ObservedCertificate, planCertificates, serverDnsNames } from "../../../src/build/certificates.ts";
import { formatGoTime } from "../../../src/build/go-time.ts";
import { planOperatorCertificates } from "../../../src/build/operator-certificates.ts";
import { aCluster, aContext, context } from "./a-cluster.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 10, 30, 12);
const cluster = aCluster();

function present(change: Partial<Extract<ObservedCertificate, { kind: "present" }>> = {}): ObservedCertificate {
  return {
    kind: "present",
    notBefore: now - day,
    notAfter: now + 30 * day,
    dnsNames: serverDnsNames(cluster, context),
    hasKey: true,
    ...change,
  };
}

const plan = (
  observed: Record<string, ObservedCertificate>,
  spec: Partial<Cluster["spec"]> = {},
  options?: { pooler: boolean },
) => planCertificates(aCluster({ spec }), new Map(Object.entries(observed)), now, context, options);
const healthy = { "db-ca": present(), "db-server": present(), "db-replication": present({ dnsNames: [] }) };

test("a new cluster gets an authority, then what it signs", () => {
  const { actions, failures, status } = plan({});
  expect(failures).toEqual([]);
  expect(actions).toEqual([
    {
      kind: "createAuthority",
      secret: "db-ca",
      commonName: "db",
      organizationalUnit: "shop",
      reason: "secret db-ca does not exist",
    },
    {
      kind: "createLeaf",
      secret: "db-server",
      authority: "db-ca",
      leaf: { commonName: "db-rw", usage: "server", dnsNames: serverDnsNames(cluster, context) },
      reason: "secret db-server does not exist",
    },
    {
      kind: "createLeaf",
      secret: "db-replication",
      authority: "db-ca",
      leaf: { commonName: "streaming_replica", usage: "client", dnsNames: [] },
      reason: "secret db-replication does not exist",
    },
  ]);
  expect(status).toMatchObject({ serverCASecret: "db-ca", clientCASecret: "db-ca", expirations: {} });
});

test("nothing is done about good certificates, and their ends are noted", () => {
  const { actions, warnings, failures, status } = plan(healthy);
  expect([actions, warnings, failures]).toEqual([[], [], []]);
  expect(status.expirations).toEqual({
    "db-ca": "2026-12-30 12:00:00 +0000 UTC",
    "db-server": "2026-12-30 12:00:00 +0000 UTC",
    "db-replication": "2026-12-30 12:00:00 +0000 UTC",
  });
});

describe("a certificate is renewed", () => {
  test.each<[string, Partial<Extract<ObservedCertificate, { kind: "present" }>>, boolean]>([
    ["seven days before its end", { notAfter: now + 7 * day - 1 }, true],
    ["not earlier", { notAfter: now + 7 * day }, false],
    ["after its end", { notAfter: now - 1 }, true],
    ["before its start", { notBefore: now + 1 }, true],
  ])("%s", (_case, change, renewed) => {
    const kinds = plan({ ...healthy, "db-ca": present(change) }).actions.map(({ kind, secret }) => [kind, secret]);
    expect(kinds).toEqual(renewed ? [["renewAuthority", "db-ca"]] : []);
    const leaf = plan({ ...healthy, "db-replication": present({ dnsNames: [], ...change }) }).actions;
    expect(leaf.map(({ kind, secret }) => [kind, secret])).toEqual(renewed ? [["renewLeaf", "db-replication"]] : []);
  });

  test("when its names differ, whatever their order", () => {
    const names = serverDnsNames(cluster, context);
    expect(plan({ ...healthy, "db-server": present({ dnsNames: [...names].reverse() }) }).actions).toEqual([]);
    expect(plan({ ...healthy, "db-server": present({ dnsNames: names.slice(1) }) }).actions).toMatchObject([
      {
        kind: "renewLeaf",
        secret: "db-server",
        reason: "certificate of db-server does not carry the wanted DNS names",
      },
    ]);
  });

  test("when its authority is another one", () => {
    const problem = "is not signed by its certificate authority";
    expect(plan({ ...healthy, "db-server": present({ problem }) }).actions).toMatchObject([
      { kind: "renewLeaf", secret: "db-server", reason: `certificate of db-server ${problem}` },
    ]);
  });

  test("by the default threshold when the setting makes no sense", () => {
    const observed = new Map(Object.entries({ ...healthy, "db-ca": present({ notAfter: now + 6 * day }) }));
    const planned = planCertificates(cluster, observed, now, aContext({ expiringThresholdDays: 0 }));
    expect(planned.actions).toHaveLength(1);
  });
});

test("a pooler has a certificate of its own", () => {
  expect(plan(healthy, {}, { pooler: true }).actions).toMatchObject([
    { kind: "createLeaf", secret: "db-pooler", authority: "db-ca", leaf: { commonName: "cnpg_pooler_pgbouncer" } },
  ]);
});

test("an own Secret that cannot be read stops the cluster", () => {
  const { actions, failures } = plan({ ...healthy, "db-ca": { kind: "unreadable", reason: "it has no ca.crt" } });
  expect(actions).toEqual([]);
  expect(failures).toEqual(["cluster shop/db: secret db-ca cannot be used: it has no ca.crt"]);
});

describe("certificates of the user's", () => {
  const certificates = {
    serverCASecret: "ca",
    serverTLSSecret: "tls",
    clientCASecret: "client-ca",
    replicationTLSSecret: "client",
  };
  const all = {
    ca: present({ hasKey: false }),
    tls: present(),
    "client-ca": present({ hasKey: false }),
    client: present(),
  };

  test("are used as they are", () => {
    const { actions, failures, warnings, status } = plan(all, { certificates });
    expect([actions, failures, warnings]).toEqual([[], [], []]);
    expect(Object.keys(status.expirations ?? {})).toEqual(["ca", "tls", "client-ca", "client"]);
  });

  test("are missed when they are not there", () => {
    const { failures, warnings } = plan({ ...all, ca: { kind: "absent" } }, { certificates });
    expect(warnings).toEqual([{ reason: "SecretNotFound", message: "Getting secret ca" }]);
    expect(failures).toEqual([expect.stringContaining("secret ca does not exist")]);
  });

  test("are never renewed, only warned of", () => {
    const { actions, warnings } = plan({ ...all, ca: present({ hasKey: false, notAfter: now }) }, { certificates });
    expect(actions).toEqual([]);
    expect(warnings).toEqual([{ reason: "SecretIsExpiring", message: "Checking expiring date of secret ca" }]);
  });

  test("are refused when they do not fit", () => {
    const { failures } = plan(
      { ...all, tls: present({ problem: "is not meant for server authentication" }) },
      { certificates },
    );
    expect(failures).toEqual([expect.stringContaining("secret tls cannot be used: is not meant for server")]);
  });

  test("are reported when an authority cannot be parsed", () => {
    const broken = { kind: "unreadable" as const, reason: "ca.crt holds no PEM certificate" };
    const { warnings, failures } = plan({ ...all, "client-ca": broken }, { certificates });
    expect(warnings).toEqual([
      { reason: "InvalidCASecret", message: "Parsing client secret client-ca: ca.crt holds no PEM certificate" },
    ]);
    expect(failures).toHaveLength(1);
  });

  test.each([
    ["serverCASecret", "ca"],
    ["clientCASecret", "ca"],
  ])("need the key of %s when we sign with it", (field, name) => {
    const { failures } = plan({ ...healthy, ca: present({ hasKey: false }) }, { certificates: { [field]: name } });
    expect(failures).toEqual([expect.stringContaining("secret ca has no ca.key")]);
    expect(plan({ ...healthy, ca: present() }, { certificates: { [field]: name } }).failures).toEqual([]);
  });

  test("can be one Secret in several parts", () => {
    const one = { serverCASecret: "x", serverTLSSecret: "x", clientCASecret: "x", replicationTLSSecret: "x" };
    expect(plan({ x: present({ hasKey: false }) }, { certificates: one })).toMatchObject({ actions: [], failures: [] });
  });
});

test("names of the server follow its Services", () => {
  const spec: Partial<Cluster["spec"]> = {
    certificates: { serverAltDNSNames: ["db.example"] },
    managed: {
      services: {
        disabledDefaultServices: ["r", "ro"],
        additional: [{ selectorType: "rw", serviceTemplate: { metadata: { name: "public" } } }],
      },
    },
  };
  expect(serverDnsNames(aCluster({ spec }), aContext({ clusterDomain: "k8s" }))).toEqual([
    "db-rw",
    "db-rw.shop",
    "db-rw.shop.svc",
    "db-rw.shop.svc.k8s",
    "public",
    "public.shop",
    "public.shop.svc",
    "public.shop.svc.k8s",
    "db.example",
  ]);
});

describe("the operator", () => {
  const inSystem = aContext({ operatorNamespace: "cnpg-system" });

  test("makes its own authority and webhook certificate", () => {
    const actions = planOperatorCertificates(
      { authority: { kind: "absent" }, webhook: { kind: "absent" } },
      now,
      inSystem,
    );
    expect(actions).toMatchObject([
      {
        kind: "createAuthority",
        secret: "cnpg-ca-secret",
        commonName: "cnpg-ca-secret",
        organizationalUnit: "cnpg-system",
      },
      {
        kind: "createLeaf",
        secret: "cnpg-webhook-cert",
        leaf: {
          commonName: "cnpg-webhook-service.cnpg-system.svc",
          dnsNames: ["cnpg-webhook-service.cnpg-system.svc"],
        },
      },
    ]);
  });

  test("renews them", () => {
    const late = present({ notAfter: now });
    const kinds = planOperatorCertificates({ authority: late, webhook: late }, now, inSystem).map(({ kind }) => kind);
    expect(kinds).toEqual(["renewAuthority", "renewLeaf"]);
    expect(planOperatorCertificates({ authority: present(), webhook: present() }, now, inSystem)).toEqual([]);
  });

  test("says which Secret it cannot read", () => {
    const broken = { kind: "unreadable" as const, reason: "it has no tls.key" };
    expect(() => planOperatorCertificates({ authority: present(), webhook: broken }, now, inSystem)).toThrow(
      "secret cnpg-system/cnpg-webhook-cert cannot be used: it has no tls.key; delete it to have it made anew",
    );
  });
});

test("Secrets carry pairs in their usual keys", () => {
  const pair = { certificate: "C", privateKey: "K" };
  const encoded = { C: btoa("C"), K: btoa("K") };
  const authority = buildAuthoritySecret(cluster, "db-ca", pair, context);
  expect(authority).toMatchObject({ type: "Opaque", data: { "ca.crt": encoded.C, "ca.key": encoded.K } });
  const leaf = buildLeafSecret(cluster, "db-server", pair, context);
  expect(leaf).toMatchObject({ type: "kubernetes.io/tls", data: { "tls.crt": encoded.C, "tls.key": encoded.K } });
  expect(leaf.metadata.labels).not.toHaveProperty("cnpg.io/reload");
  expect(buildLeafSecret(cluster, "db-pooler", pair, context).metadata.labels).toHaveProperty("cnpg.io/reload", "true");
  expect(renewalPatch("leaf", "C")).toEqual({ data: { "tls.crt": encoded.C } });
  expect(renewalPatch("authority", "C")).toEqual({ data: { "ca.crt": encoded.C } });
  const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "operator", uid: "u" };
  expect(buildOperatorSecret("leaf", "cnpg-webhook-cert", "cnpg-system", pair, owner)).toMatchObject({
    type: "kubernetes.io/tls",
    metadata: { namespace: "cnpg-system", ownerReferences: [owner] },
  });
});

test("times read as Go prints them", () => {
  expect(formatGoTime(Date.UTC(2027, 1, 27, 23, 58, 6, 999))).toBe("2027-02-27 23:58:06 +0000 UTC");
});
