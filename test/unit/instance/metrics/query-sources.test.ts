import { expect, test } from "vitest";
import type { InstanceContext } from "../../../../src/instance/instance-context.ts";
import { QuerySources } from "../../../../src/instance/metrics-server.ts";
import { SecretReader } from "../../../../src/instance/secret-reader.ts";
import { resources } from "../../../../src/kube/resources.ts";
import { KubeError } from "../../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../../support/fake-kube-api.ts";
import { captureLogs } from "../../../support/log-capture.ts";

function world() {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  const monitoring = {
    customQueriesConfigMap: [{ name: "queries", key: "custom.yaml" }],
    customQueriesSecret: [{ name: "hidden", key: "custom.yaml" }],
  };
  const state = { cluster: { spec: { monitoring }, status: {} as Record<string, unknown> } };
  const context = { kube, clock, state, settings: { namespace: "ns" }, logger: captureLogs().logger };
  const sources = new QuerySources(context as unknown as InstanceContext, new SecretReader(kube, clock, "ns"));
  const metadata = (name: string) => ({ name, namespace: "ns" });
  kube.seed(resources.configMaps, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata("queries"),
    data: { "custom.yaml": "a: 1" },
  });
  const seedSecret = () =>
    kube.seed(resources.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadata("hidden"),
      data: { "custom.yaml": Buffer.from("b: 2").toString("base64") },
    });
  const refuse = (kind: "forbidden" | "unavailable" | undefined) =>
    kube.intercept(
      kind && (({ verb }) => (verb === "get" ? { error: new KubeError(kind, { kind, status: 403 }) } : undefined)),
    );
  const refresh = async () => {
    await sources.refresh(new AbortController().signal);
    return sources.current.map((it) => it.yaml);
  };
  return { clock, kube, state, seedSecret, refuse, refresh };
}

test("queries that may not be read yet are read a little later, though nothing has changed", async () => {
  const { clock, kube, refuse, refresh, seedSecret } = world();
  seedSecret();
  refuse("forbidden");
  expect(await refresh()).toEqual([]);
  refuse(undefined);
  const before = kube.requests.length;
  expect(await refresh()).toEqual([]);
  expect(kube.requests.length).toBe(before);
  await clock.advance(5_000);
  expect(await refresh()).toEqual(["a: 1", "b: 2"]);
});

test("what was read stays in use while the API server is away", async () => {
  const { clock, refuse, refresh, seedSecret, state, kube } = world();
  seedSecret();
  await refresh();
  state.cluster.status = { configMapResourceVersion: { metrics: { queries: "7" } } };
  refuse("unavailable");
  expect(await refresh()).toEqual(["a: 1", "b: 2"]);
  refuse(undefined);
  await clock.advance(5_000);
  await refresh();
  const before = kube.requests.length;
  await refresh();
  expect(kube.requests.length).toBe(before);
});

test("queries that do not exist are not asked for again until the status tells that they came", async () => {
  const { refresh, seedSecret, state, kube } = world();
  expect(await refresh()).toEqual(["a: 1"]);
  const before = kube.requests.length;
  seedSecret();
  await refresh();
  expect(kube.requests.length).toBe(before);
  state.cluster.status = { secretsResourceVersion: { metrics: { hidden: "2" } } };
  expect(await refresh()).toEqual(["a: 1", "b: 2"]);
});

test("a Secret that changed is read anew, whatever is remembered of it", async () => {
  const { kube, refresh, seedSecret, state } = world();
  seedSecret();
  await refresh();
  const key = { namespace: "ns", name: "hidden" };
  const secret = await kube.get(resources.secrets, key);
  await kube.update(resources.secrets, { ...secret, data: { "custom.yaml": Buffer.from("c: 3").toString("base64") } });
  state.cluster.status = { secretsResourceVersion: { metrics: { hidden: "2" } } };
  expect(await refresh()).toEqual(["a: 1", "c: 3"]);
});
