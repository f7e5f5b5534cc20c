import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import type { Deployment } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { resources } from "../../../src/kube/resources.ts";
import { type FakeNode, startFakeNode } from "../../contract/operator/fake-node.ts";
import { type RunningOperator, startOperator } from "../../contract/operator/world.ts";
import { type Registry, startRegistry } from "../../support/registry.ts";
import { startUserKubernetes, type UserKubernetes } from "../../support/user-kubernetes.ts";

// A real API server stands for the cluster of a user, and a real push for their registry. What such a cluster has besides,
// nodes and controllers, is played; the operator runs in this process.
let kubernetes: UserKubernetes;
let registry: Registry;
let api: KubeClient;
let node: FakeNode | undefined;
let operator: RunningOperator | undefined;

beforeAll(async () => {
  kubernetes = await startUserKubernetes();
  registry = await startRegistry();
  api = createKubeApi(loadKubeconfigConnection(kubernetes.controlPlane.kubeconfig));
});

afterAll(async () => {
  await operator?.stop();
  await node?.stop();
  await api?.close();
  await registry?.stop();
  await kubernetes?.stop();
});

/** Plays the controller of Deployments, and the operator's pod with it, until the work is done. */
async function playCluster<T>(work: Promise<T>): Promise<T> {
  let busy = true;
  const done = work.finally(() => {
    busy = false;
  });
  while (busy) {
    await delay(200);
    // Before the definitions are there nobody could watch their kinds.
    if (!(await api.serves(resources.clusters))) continue;
    for (const deployment of await api.list(resources.deployments, { namespace: "cnpg-system" })) {
      if (deployment.metadata.name === "cnpg-controller-manager") await runOperatorPod();
      await makeAvailable(deployment);
    }
  }
  return done;
}

async function runOperatorPod(): Promise<void> {
  if (operator) return;
  // No Service leads to this process: the webhooks, which the operator's pod would serve, are passed over.
  const body = (webhooks: readonly object[] | undefined) => ({
    webhooks: (webhooks ?? []).map((it) => ({ ...it, failurePolicy: "Ignore", timeoutSeconds: 1 })),
  });
  const [mutating, validating] = [resources.mutatingWebhookConfigurations, resources.validatingWebhookConfigurations];
  const names = {
    mutating: "cnpg-mutating-webhook-configuration",
    validating: "cnpg-validating-webhook-configuration",
  };
  const first = await api.get(mutating, { name: names.mutating });
  await api.patch(mutating, { name: names.mutating }, { type: "merge", body: body(first.webhooks) });
  const second = await api.get(validating, { name: names.validating });
  await api.patch(validating, { name: names.validating }, { type: "merge", body: body(second.webhooks) });
  node = await startFakeNode(api, "default");
  operator = startOperator({ controlPlane: kubernetes.controlPlane, api, stop: async () => undefined }, "default");
}

async function makeAvailable({ metadata, spec, status }: Deployment): Promise<void> {
  if (status?.observedGeneration === metadata.generation) return;
  const replicas = spec?.replicas ?? 1;
  const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
  const key = { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
  const body = { status: { observedGeneration: metadata.generation, ...counts } };
  await api.patch(resources.deployments, key, { type: "merge", body }, { subresource: "status" });
}

describe("npm start -- --context NAME --registry HOST/PATH", () => {
  it("says that the registry does not take the images, and what to do, and leaves the cluster as it is", async () => {
    const nobody = `localhost:${await choosePort()}/team`;
    const { code, output } = await kubernetes.start(["--context", "mine", "--registry", nobody]);
    expect(code, output).toBe(1);
    expect(output).toContain(`The images can't be pushed to ${nobody}: `);
    expect(output).toMatch(/refused/);
    expect(output).toContain(`login ${nobody.split("/")[0]}`);
    expect(output).not.toMatch(/^\s+at /m);
    expect(await kubernetes.controlPlane.kubectl(["get", "crds", "-o", "name"])).toBe("");
  }, 900_000);

  it("pushes the images, installs the operator with them, and ends with the example healthy", async () => {
    const team = `${registry.host}/team`;
    const { code, output } = await playCluster(kubernetes.start(["--context", "mine", "--registry", team]));
    expect(code, output).toBe(0);
    const references = registry.references().map((it) => `${registry.host}/${it}`);
    expect(references.map((it) => it.replace(/-[0-9a-f]{12}$/, ""))).toEqual([
      `${team}/cnpg-ts:dev`,
      `${team}/plugin-barman-cloud:dev`,
      `${team}/postgresql:17`,
      `${team}/postgresql:18`,
    ]);
    for (const reference of registry.references()) {
      const { layers } = JSON.parse(registry.manifest(reference) ?? "{}") as { layers: { digest: string }[] };
      expect(layers.length).toBeGreaterThan(0);
      for (const { digest } of layers) expect(registry.has(digest), reference).toBe(true);
    }
    const [operatorImage, pluginImage, postgres17] = references;
    const imagesOf = async (name: string) => {
      const { spec } = await api.get(resources.deployments, { namespace: "cnpg-system", name });
      const [container] = spec?.template.spec?.containers ?? [];
      return [container?.image, ...(container?.env ?? []).map((it) => it.value)];
    };
    expect(await imagesOf("cnpg-controller-manager")).toContain(operatorImage);
    expect(await imagesOf("barman-cloud")).toContain(pluginImage);
    const cluster = await api.get(resources.clusters, { namespace: "default", name: "quickstart" });
    expect(cluster.spec.imageName).toBe(postgres17);
    expect(cluster.status).toMatchObject({ phase: "Cluster in healthy state", readyInstances: 3 });
    // What is printed can be pasted as it is: it leads to this cluster, whatever the current context is.
    expect(output).toMatch(/^quickstart-1 +primary +ready/m);
    expect(output).toContain("kubectl --context mine -n default exec -it quickstart-1 -c postgres -- psql app");
    expect(output).toContain("kubectl --context mine -n default delete cluster quickstart");
    expect(output).not.toContain("npm stop");
    expect(kubernetes.touched()).toBe(0);
    expect(kubernetes.kubeconfig()).toContain("current-context: production");
  }, 900_000);
});
