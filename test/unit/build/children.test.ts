import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Lease, OwnerReference, PolicyRule, ServiceAccount } from "../../../src/api/generated/kubernetes.ts";
import {
  buildApplicationSecret,
  buildPullSecret,
  wantsApplicationSecret,
  wantsSuperuserSecret,
} from "../../../src/build/credentials.ts";
import { desiredDisruptionBudgets } from "../../../src/build/disruption-budgets.ts";
import { planLease, wantsFailoverQuorum } from "../../../src/build/lease.ts";
import { ownsObject } from "../../../src/build/metadata.ts";
import {
  buildMonitoringConfigMap,
  buildMonitoringSecret,
  isMonitoringCopyOutdated,
} from "../../../src/build/monitoring.ts";
import { generatePassword } from "../../../src/build/password.ts";
import { buildRole, sameRules } from "../../../src/build/role.ts";
import { buildServiceAccount, mergeServiceAccount } from "../../../src/build/service-account.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";
import { aCluster, type ClusterParts, context } from "./a-cluster.ts";

describe("credentials", () => {
  const recovery = { recovery: { source: "o", database: "app", owner: "app" } };
  test.each<[boolean, Partial<Cluster["spec"]>]>([
    [true, {}],
    [false, { bootstrap: { initdb: {} } }],
    [false, { bootstrap: { initdb: { database: "a", owner: "a", secret: { name: "mine" } } } }],
    [true, { bootstrap: recovery }],
    [false, { bootstrap: recovery, replica: { enabled: true, source: "o" } }],
    [true, { bootstrap: recovery, replica: { enabled: false, source: "o" } }],
  ])("of the application are wanted (%s) with %j", (wanted, spec) => {
    expect(wantsApplicationSecret(aCluster({ spec }))).toBe(wanted);
  });

  test("of the superuser are wanted when access is enabled and no Secret is named", () => {
    expect(wantsSuperuserSecret(aCluster())).toBe(false);
    expect(wantsSuperuserSecret(aCluster({ spec: { enableSuperuserAccess: true } }))).toBe(true);
    expect(
      wantsSuperuserSecret(aCluster({ spec: { enableSuperuserAccess: true, superuserSecret: { name: "s" } } })),
    ).toBe(false);
  });

  test("survive odd names", () => {
    const bootstrap = { initdb: { database: "a/b", owner: "c:d@e" } };
    const data = buildApplicationSecret(aCluster({ spec: { bootstrap } }), "p", context).data ?? {};
    const text = (key: string) => Buffer.from(data[key] ?? "", "base64").toString();
    const uri = new URL(text("uri"));
    expect([decodeURIComponent(uri.username), decodeURIComponent(uri.pathname)]).toEqual(["c:d@e", "/a/b"]);
    expect(text("pgpass")).toBe("db-rw:5432:a/b:c\\:d@e:p\n");
    expect(text("jdbc-uri")).toBe("jdbc:postgresql://db-rw.shop:5432/a%2Fb?password=p&user=c%3Ad%40e");
  });

  test("need a database", () => {
    expect(() => buildApplicationSecret(aCluster({ spec: { bootstrap: {} } }), "p", context)).toThrow(
      "cluster shop/db has no application database",
    );
  });

  test("have a password of 64 letters and digits, ten of them digits", () => {
    const random = createSeededRandom(1);
    const passwords = Array.from({ length: 50 }, () => generatePassword(random));
    for (const password of passwords) {
      expect(password).toMatch(/^[A-Za-z0-9]{64}$/);
      expect(password.replace(/[^0-9]/g, "")).toHaveLength(10);
    }
    expect(new Set(passwords).size).toBe(50);
  });

  test("of the registry are copied with their type", () => {
    const source = {
      apiVersion: "v1" as const,
      kind: "Secret" as const,
      metadata: {},
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": "e30=" },
    };
    expect(buildPullSecret(aCluster(), source, context)).toMatchObject({
      type: source.type,
      data: source.data,
      metadata: { name: "db-pull", namespace: "shop" },
    });
  });
});

describe("disruption budgets", () => {
  const budgets = (spec: Partial<Cluster["spec"]>) =>
    desiredDisruptionBudgets(aCluster({ spec }), context).map(({ budget }) => budget?.spec?.minAvailable);
  const waiting = { inProgress: true, reusePVC: true };
  test.each<[Partial<Cluster["spec"]>, (number | undefined)[]]>([
    [{ instances: 1 }, [1, undefined]],
    [{ instances: 2 }, [1, undefined]],
    [{ instances: 3 }, [1, 1]],
    [{ instances: 5 }, [1, 3]],
    [{ instances: 5, enablePDB: false }, [undefined, undefined]],
    [{ instances: 3, nodeMaintenanceWindow: waiting }, [1, undefined]],
    [{ instances: 1, nodeMaintenanceWindow: waiting }, [undefined, undefined]],
    [{ instances: 3, nodeMaintenanceWindow: { ...waiting, reusePVC: false } }, [1, 1]],
  ])("for %j are %j", (spec, expected) => expect(budgets(spec)).toEqual(expected));
});

describe("a ServiceAccount", () => {
  const build = (names: string[], parts: ClusterParts = {}) =>
    buildServiceAccount(
      aCluster({ ...parts, spec: { ...parts.spec, imagePullSecrets: names.map((name) => ({ name })) } }),
      context,
      { pullSecret: true },
    );
  const pulls = (account: ServiceAccount | null) => account?.imagePullSecrets?.map(({ name }) => name);

  test("that is up to date is left alone", () => {
    const account = build(["a"]);
    expect(mergeServiceAccount(account, account)).toBeNull();
    expect(
      mergeServiceAccount(
        { ...account, imagePullSecrets: [...(account.imagePullSecrets ?? []), { name: "x" }] },
        account,
      ),
    ).toBeNull();
  });

  test("gains and loses what the cluster names, and keeps what others added", () => {
    const live = build(["a"]);
    const withForeign = { ...live, imagePullSecrets: [{ name: "foreign" }, ...(live.imagePullSecrets ?? [])] };
    expect(pulls(mergeServiceAccount(withForeign, build(["b"])))).toEqual(["foreign", "db-pull", "b"]);
  });

  test.each(["", "{", "{}"])("with an unreadable note (%j) loses nothing", (note) => {
    const live = build(["a"]);
    const annotations = { ...live.metadata.annotations, "cnpg.io/managedSecrets": note };
    const merged = mergeServiceAccount({ ...live, metadata: { ...live.metadata, annotations } }, build(["b"]));
    expect(pulls(merged)).toEqual(["db-pull", "a", "b"]);
  });

  test("carries the user's metadata", () => {
    const template = { metadata: { labels: { x: "y" }, annotations: { role: "r" } } };
    expect(build([], { spec: { serviceAccountTemplate: template } }).metadata).toMatchObject(template.metadata);
  });
});

describe("a Role", () => {
  test("lets instances read their own pods and no others", () => {
    const podRule = (instanceNames: string[]) =>
      buildRole({ ...aCluster(), status: { instanceNames } }, context).rules?.find(
        ({ resources }) => resources?.[0] === "pods",
      );
    expect(podRule(["db-2", "db-1"])).toMatchObject({ verbs: ["get"], resourceNames: ["db-1", "db-2"] });
    // Without names the rule would mean all pods.
    expect(podRule([])).toBeUndefined();
  });

  test("lets instances read the secrets of others that concern them", () => {
    const databaseRole = (name: string, cluster: string) => ({
      apiVersion: "postgresql.cnpg.io/v1" as const,
      kind: "DatabaseRole" as const,
      metadata: {},
      spec: { name: "r", cluster: { name: cluster }, passwordSecret: { name } },
    });
    const { rules } = buildRole(aCluster(), context, {
      originBackup: {
        apiVersion: "postgresql.cnpg.io/v1",
        kind: "Backup",
        metadata: {},
        spec: { cluster: { name: "old" } },
        status: { endpointCA: { name: "old-ca", key: "k" } },
      },
      databaseRoles: [databaseRole("mine", "db"), databaseRole("theirs", "other")],
    });
    expect(rules?.find(({ resources }) => resources?.[0] === "secrets")?.resourceNames).toEqual([
      "db-app",
      "db-ca",
      "db-replication",
      "db-server",
      "db-superuser",
      "mine",
      "old-ca",
    ]);
  });

  test("is compared by what it grants", () => {
    const rule: PolicyRule = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
    expect(sameRules([rule], [{ ...rule, resourceNames: [] }])).toBe(true);
    expect(sameRules(undefined, [])).toBe(true);
    expect(sameRules([rule], [{ ...rule, verbs: ["get", "list"] }])).toBe(false);
    expect(sameRules([rule], [rule, rule])).toBe(false);
  });
});

describe("a Lease", () => {
  const owner = (change: Partial<OwnerReference> = {}): OwnerReference => ({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    name: "db",
    uid: "u-1",
    controller: true,
    ...change,
  });
  const live = (...ownerReferences: OwnerReference[]): Lease => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "db", namespace: "shop", ownerReferences, resourceVersion: "5" },
    spec: { holderIdentity: "db-1" },
  });

  test.each<[string, Lease | undefined, string]>([
    ["none", undefined, "create"],
    ["its own", live(owner()), "keep"],
    ["nobody's", live(), "adopt"],
    ["one that is merely related", live(owner({ controller: false, uid: "x" })), "adopt"],
    ["an earlier cluster's", live(owner({ uid: "gone" })), "adopt"],
    ["another cluster's", live(owner({ name: "x" })), "conflict"],
    ["another kind's", live(owner({ apiVersion: "apps/v1", kind: "Deployment" })), "conflict"],
  ])("with %s: %3$s", (_case, lease, kind) => {
    expect(planLease(aCluster(), lease, context).kind).toBe(kind);
  });

  test("is adopted with its spec, and conflicts are named", () => {
    const plan = planLease(aCluster(), live(owner({ uid: "gone" })), context);
    expect(plan).toMatchObject({
      kind: "adopt",
      lease: { metadata: { resourceVersion: "5", ownerReferences: [owner()] }, spec: { holderIdentity: "db-1" } },
    });
    expect(planLease(aCluster(), live(owner({ kind: "Deployment" })), context)).toEqual({
      kind: "conflict",
      message: 'primary lease shop/db is controlled by Deployment "db", refusing to adopt',
    });
  });
});

test("owning means name, kind and UID", () => {
  const reference = { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "db", uid: "u-1", controller: true };
  const owned = (change: object) =>
    ownsObject(aCluster(), { metadata: { ownerReferences: [{ ...reference, ...change }] } });
  expect(owned({})).toBe(true);
  for (const change of [{ uid: "x" }, { name: "x" }, { kind: "Pooler" }, { apiVersion: "x/v1" }, { controller: false }])
    expect(owned(change)).toBe(false);
});

test("a failover quorum is kept when it is asked for", () => {
  expect(wantsFailoverQuorum(aCluster())).toBe(false);
  const synchronous = { method: "any" as const, number: 1, failoverQuorum: true };
  expect(wantsFailoverQuorum(aCluster({ spec: { postgresql: { synchronous } } }))).toBe(true);
});

describe("default queries", () => {
  const configMap = (data: Record<string, string>, annotations: Record<string, string> = {}) => ({
    apiVersion: "v1" as const,
    kind: "ConfigMap" as const,
    metadata: { name: "source", annotations },
    data,
  });

  test("are copied under their name, without an owner", () => {
    const copy = buildMonitoringConfigMap(configMap({ queries: "q", other: "o" }), "shop", context);
    expect(copy).toEqual({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "cnpg-default-monitoring",
        namespace: "shop",
        labels: { "app.kubernetes.io/managed-by": "cloudnative-pg", "cnpg.io/reload": "true" },
        annotations: { "cnpg.io/operatorVersion": "1.30.0" },
      },
      data: { queries: "q" },
    });
    const secret = { apiVersion: "v1" as const, kind: "Secret" as const, metadata: {}, data: { queries: "cQ==" } };
    expect(buildMonitoringSecret(secret, "shop", context)).toMatchObject({ kind: "Secret", data: { queries: "cQ==" } });
  });

  test("are not copied from nothing", () => {
    expect(buildMonitoringConfigMap(configMap({}), "shop", context)).toBeUndefined();
  });

  test("are refreshed when they differ and are ours", () => {
    const wanted = configMap({ queries: "new" });
    const ours = { "cnpg.io/operatorVersion": "1.29.0" };
    expect(isMonitoringCopyOutdated(configMap({ queries: "old" }, ours), wanted)).toBe(true);
    expect(isMonitoringCopyOutdated(configMap({ queries: "new" }, ours), wanted)).toBe(false);
    expect(isMonitoringCopyOutdated(configMap({ queries: "old" }), wanted)).toBe(false);
  });
});
