import { expect, test } from "vitest";
import { resources } from "../../../../src/kube/resources.ts";
import { createPluginDirectory } from "../../../../src/operator/plugins/plugin-directory.ts";
import { SpecVerdicts } from "../../../../src/operator/plugins/spec-verdicts.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../../support/fake-kube-api.ts";
import { captureLogs } from "../../../support/log-capture.ts";
import { createSeededRandom } from "../../../support/seeded-random.ts";
import { aCluster } from "../../plan/cluster/fixtures.ts";
import { fakePlugin } from "../../rpc/fake-plugin.ts";
import { startStores } from "../started-stores.ts";

const { signal } = new AbortController();

/** A plugin that accepts everything, and the labels of the calls that it got. */
function agreeable() {
  const asked: string[] = [];
  const operator = ["TYPE_VALIDATE_CLUSTER_CREATE"];
  const plugin = fakePlugin("agreeable", { operator }, (label) => {
    asked.push(label);
    return [];
  });
  return { asked, plugin };
}

test("a spec is judged once, and anew once the Cluster is gone and another one has its name", async () => {
  const { asked, plugin } = agreeable();
  const verdicts = new SpecVerdicts();
  const judge = () => verdicts.judge([plugin], aCluster(), signal);
  expect([await judge(), await judge()]).toEqual([{ kind: "accepted" }, { kind: "accepted" }]);
  expect(asked).toHaveLength(1);
  verdicts.forget("somebody else's");
  await judge();
  expect(asked).toHaveLength(1);
  verdicts.forget(aCluster().metadata.uid ?? "");
  await judge();
  expect(asked).toHaveLength(2);
});

test("a directory tells which Clusters are gone, and of no change", async () => {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  const { resourceVersion: _, ...metadata } = aCluster().metadata;
  const cluster = api.seed(resources.clusters, { ...aCluster(), metadata });
  const { stores, stop } = await startStores(api, clock);
  const directory = createPluginDirectory({
    api,
    stores,
    events: { record: () => undefined },
    clock,
    random: createSeededRandom(),
    logger: captureLogs().logger,
    operatorNamespace: "",
    socketFolder: "",
    enqueue: () => undefined,
  });
  const gone: string[] = [];
  directory.onClusterGone((uid) => gone.push(uid));
  const key = { namespace: cluster.metadata.namespace ?? "", name: cluster.metadata.name ?? "" };
  await api.patch(resources.clusters, key, { type: "merge", body: { metadata: { labels: { a: "b" } } } });
  await clock.settle();
  expect(gone).toEqual([]);
  await api.delete(resources.clusters, key);
  await clock.settle();
  expect(gone).toEqual([cluster.metadata.uid]);
  await stop();
});
