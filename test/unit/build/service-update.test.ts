import { describe, expect, test } from "vitest";
import type { Service, ServiceSpec } from "../../../src/api/generated/kubernetes.ts";
import { planServiceUpdate } from "../../../src/build/service-update.ts";
import { buildDefaultService, desiredServices, obsoleteManagedServices } from "../../../src/build/services.ts";
import { aCluster, aContext, context } from "./a-cluster.ts";

const proposed = buildDefaultService(aCluster(), "rw", context);

/** The Service as the API server keeps it. */
function live(change: { spec?: Partial<ServiceSpec>; annotations?: Record<string, string | undefined> } = {}): Service {
  const annotations = Object.entries({ ...proposed.metadata.annotations, ...change.annotations });
  return {
    ...proposed,
    metadata: {
      ...proposed.metadata,
      resourceVersion: "7",
      annotations: Object.fromEntries(annotations.filter((entry): entry is [string, string] => entry[1] !== undefined)),
    },
    spec: { ...proposed.spec, clusterIP: "10.0.0.1", ipFamilies: ["IPv4"], sessionAffinity: "None", ...change.spec },
  };
}

function propose(spec: Partial<ServiceSpec>, annotations: Record<string, string> = {}): Service {
  const whole = { ...proposed.spec, ...spec };
  return {
    ...proposed,
    metadata: {
      ...proposed.metadata,
      annotations: {
        ...proposed.metadata.annotations,
        "cnpg.io/lastAppliedSpec": JSON.stringify(whole),
        ...annotations,
      },
    },
    spec: whole,
  };
}

describe("an existing Service", () => {
  test("is left alone when the API server only filled it in", () => {
    expect(planServiceUpdate(live(), proposed)).toEqual({ kind: "none" });
  });

  test("keeps what others changed and we never asked for", () => {
    const changed = live({ spec: { externalTrafficPolicy: "Local", sessionAffinity: "ClientIP" } });
    expect(planServiceUpdate(changed, proposed)).toEqual({ kind: "none" });
  });

  test("gets what changed since it was applied, and nothing else", () => {
    const plan = planServiceUpdate(live({ spec: { sessionAffinity: "ClientIP" } }), propose({ type: "LoadBalancer" }));
    expect(plan).toMatchObject({
      kind: "update",
      reason: "service db-rw differs in its spec",
      service: {
        metadata: { resourceVersion: "7" },
        spec: { type: "LoadBalancer", clusterIP: "10.0.0.1", sessionAffinity: "ClientIP" },
      },
    });
    const note = plan.kind === "update" ? plan.service.metadata.annotations?.["cnpg.io/lastAppliedSpec"] : "";
    expect(JSON.parse(note ?? "")).toMatchObject({ type: "LoadBalancer" });
  });

  test("loses what is no longer proposed", () => {
    const before = propose({ publishNotReadyAddresses: true });
    const given = { ...live({ spec: { publishNotReadyAddresses: true } }), metadata: before.metadata };
    const plan = planServiceUpdate(given, proposed);
    expect(plan.kind === "update" && plan.service.spec).not.toHaveProperty("publishNotReadyAddresses");
  });

  test.each([undefined, "{", "[]"])("is merged as a whole when its note is %s", (note) => {
    const given = live({ annotations: { "cnpg.io/lastAppliedSpec": note }, spec: { type: "NodePort" } });
    expect(planServiceUpdate(given, proposed)).toMatchObject({
      kind: "update",
      service: { spec: { type: "ClusterIP", clusterIP: "10.0.0.1" } },
    });
  });

  test("keeps the ports that were assigned to it", () => {
    const given = live({
      spec: { ports: [{ name: "postgres", port: 5432, protocol: "TCP", targetPort: 5432, nodePort: 31000 }] },
    });
    const wanted = propose({
      ports: [
        { name: "pg", port: 5432 },
        { name: "more", port: 9000 },
      ],
    });
    expect(planServiceUpdate(given, wanted)).toMatchObject({
      kind: "update",
      service: {
        spec: {
          ports: [
            { name: "pg", port: 5432, protocol: "TCP", targetPort: 5432, nodePort: 31000 },
            { name: "more", port: 9000 },
          ],
        },
      },
    });
  });

  test("is recreated for what the user changed when that is its strategy, and updated for another operator version", () => {
    const strategy = { "cnpg.io/updateStrategy": "replace" };
    const given = live({ annotations: strategy });
    const labelled = propose({}, strategy);
    labelled.metadata = { ...labelled.metadata, labels: { ...labelled.metadata.labels, "new-label": "new" } };
    expect(planServiceUpdate(given, propose({ type: "NodePort" }, strategy))).toMatchObject({ kind: "recreate" });
    expect(planServiceUpdate(given, labelled)).toMatchObject({ kind: "recreate" });
    expect(planServiceUpdate(given, propose({}, { ...strategy, extra: "1" }))).toMatchObject({ kind: "recreate" });
    expect(planServiceUpdate(given, propose({}, { ...strategy, "cnpg.io/operatorVersion": "9.9.9" }))).toMatchObject({
      kind: "update",
      reason: "service db-rw differs in its metadata",
    });
    expect(planServiceUpdate(given, propose({}, strategy))).toEqual({ kind: "none" });
  });

  test("settles after one update", () => {
    const wanted = propose({ type: "LoadBalancer" }, { extra: "1" });
    const plan = planServiceUpdate(live(), wanted);
    expect(plan.kind === "update" && planServiceUpdate(plan.service, wanted)).toEqual({ kind: "none" });
  });
});

describe("wanted Services", () => {
  test("leave out the disabled ones and -any", () => {
    const cluster = aCluster({ spec: { managed: { services: { disabledDefaultServices: ["ro"] } } } });
    const wanted = desiredServices(cluster, context).map(({ name, service }) => [name, service !== undefined]);
    expect(wanted).toEqual([
      ["db-any", false],
      ["db-r", true],
      ["db-ro", false],
      ["db-rw", true],
    ]);
    expect(desiredServices(cluster, aContext({ createAnyService: true }))[0]?.service).toBeDefined();
  });

  const additional = (spec: ServiceSpec) =>
    desiredServices(
      aCluster({
        spec: {
          managed: {
            services: {
              additional: [
                {
                  selectorType: "ro",
                  serviceTemplate: {
                    metadata: { name: "extra", labels: { "cnpg.io/cluster": "other", mine: "yes" } },
                    spec: spec as never,
                  },
                },
              ],
            },
          },
        },
      }),
      context,
    ).at(-1)?.service;

  test("from a template carry our selector and cluster label", () => {
    const service = additional({ selector: { a: "b" } });
    expect(service?.spec?.selector).toEqual({ "cnpg.io/cluster": "db", "cnpg.io/instanceRole": "replica" });
    expect(service?.metadata.labels).toMatchObject({
      "cnpg.io/cluster": "db",
      mine: "yes",
      "cnpg.io/isManaged": "true",
    });
  });

  test.each([
    ["no port", [], ["postgres"]],
    ["another port", [{ name: "x", port: 1 }], ["x", "postgres"]],
    ["our number", [{ name: "x", port: 5432 }], ["x"]],
    ["our name", [{ name: "postgres", port: 6432 }], ["postgres"]],
  ])("from a template with %s expose PostgreSQL once", (_case, ports, names) => {
    expect(additional({ ports })?.spec?.ports?.map(({ name }) => name)).toEqual(names);
  });

  test("find the managed ones that are no longer described", () => {
    const managed = (name: string, labels: Record<string, string>): Service => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, labels },
    });
    const ours = { "cnpg.io/cluster": "db", "cnpg.io/isManaged": "true" };
    const services = [
      managed("old", ours),
      managed("default", { "cnpg.io/cluster": "db" }),
      managed("other", { ...ours, "cnpg.io/cluster": "x" }),
    ];
    expect(obsoleteManagedServices(aCluster(), services)).toEqual(["old"]);
  });
});
