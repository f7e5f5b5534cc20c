import { describe, expect, it } from "vitest";
import { isRolledOut } from "../../../local/quickstart/deploy.ts";
import { registryName } from "../../../local/quickstart/images.ts";
import { parseManifests, useImages } from "../../../local/quickstart/manifests.ts";
import { renderNextSteps } from "../../../local/quickstart/next-steps.ts";
import { parseReplication, renderStatus } from "../../../local/quickstart/status-table.ts";
import { type ClusterView, describeProgress, isHealthy, type PodView } from "../../../local/quickstart/wait-healthy.ts";
import { phases } from "../../../src/api/phases.ts";

const cluster: ClusterView = {
  metadata: { name: "quickstart", namespace: "default" },
  spec: { instances: 2 },
  status: { phase: phases.healthy, readyInstances: 2, currentPrimary: "quickstart-1", timelineID: 3 },
};

function pod(index: number, role: string, ready = true): PodView {
  return {
    metadata: { name: `quickstart-${index}`, labels: { "cnpg.io/instanceRole": role } },
    spec: { nodeName: "node-1" },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  };
}

describe("manifests", () => {
  const text = `
apiVersion: v1
kind: Namespace
metadata: {name: cnpg-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cnpg-controller-manager}
spec:
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
        - image: localhost/cnpg-ts:dev
          env: [{name: OPERATOR_IMAGE_NAME, value: "localhost/cnpg-ts:dev"}]
---
`;
  const images = [{ name: "localhost/cnpg-ts:dev", target: "host/cnpg-ts:dev-1", digest: "sha256:1" }];

  it("use the images of the cluster at hand everywhere", () => {
    const [namespace, deployment] = useImages(parseManifests(text), images);
    expect(namespace).toMatchObject({ kind: "Namespace", metadata: { name: "cnpg-system" } });
    expect(deployment).toMatchObject({
      spec: {
        template: {
          metadata: { labels: { a: "b" }, annotations: { "cnpg-ts.dev/image-digest": "sha256:1" } },
          spec: {
            containers: [
              { image: "host/cnpg-ts:dev-1", env: [{ name: "OPERATOR_IMAGE_NAME", value: "host/cnpg-ts:dev-1" }] },
            ],
          },
        },
      },
    });
  });

  it("leave other people's Deployments as they are", () => {
    const other = parseManifests(text.replaceAll("localhost/cnpg-ts:dev", "other:1"));
    expect(useImages(other, images)).toEqual(other);
  });

  it("get a new name in a registry for each new content", () => {
    expect(registryName("localhost/postgresql:17", `sha256:${"ab".repeat(32)}`, "host:5000/team")).toBe(
      "host:5000/team/postgresql:17-abababababab",
    );
  });
});

describe("a Deployment", () => {
  const current = { observedGeneration: 2, updatedReplicas: 1, availableReplicas: 1, replicas: 1 };
  it.each([
    ["is there", current, true],
    ["has not been looked at since its change", { ...current, observedGeneration: 1 }, false],
    ["still has an old pod", { ...current, replicas: 2 }, false],
    ["has no available pod", { ...current, availableReplicas: 0 }, false],
    ["has no status", undefined, false],
  ])("that %s", (_, status, done) => {
    const deployment = { metadata: { generation: 2 }, spec: {}, ...(status ? { status } : {}) };
    expect(isRolledOut(deployment)).toBe(done);
  });
});

describe("a healthy cluster", () => {
  it("says so itself and by each of its pods", () => {
    expect(isHealthy(cluster, [pod(1, "primary"), pod(2, "replica")])).toBe(true);
  });

  it("is not one whose status is that of before a restart", () => {
    expect(isHealthy(cluster, [pod(1, "primary"), pod(2, "replica", false)])).toBe(false);
  });

  it("is not one that has lost a pod", () => {
    expect(isHealthy(cluster, [pod(1, "primary")])).toBe(false);
  });

  it("is described in one line on the way", () => {
    const status = { phase: phases.creatingReplica, phaseReason: "Creating replica quickstart-2-join" };
    expect(describeProgress({ ...cluster, status }, [pod(1, "primary")])).toBe(
      "Creating a new replica (Creating replica quickstart-2-join), 1 of 2 instances ready",
    );
    expect(describeProgress({ metadata: cluster.metadata, spec: cluster.spec }, [])).toBe(
      "not seen by the operator yet, 0 of 2 instances ready",
    );
  });
});

describe("the closing words", () => {
  const pods = [pod(1, "primary"), pod(2, "replica")];

  it("show role, lag and timeline of each instance", () => {
    const table = renderStatus(cluster, pods, parseReplication("quickstart-2|streaming|1024\n"));
    expect(table).toEqual([
      "INSTANCE      ROLE     STATE  STREAMING  LAG         TIMELINE  NODE",
      "quickstart-1  primary  ready  -          -           3         node-1",
      "quickstart-2  replica  ready  streaming  1024 bytes  3         node-1",
    ]);
  });

  it("say unknown for a standby that the primary does not know", () => {
    expect(renderStatus(cluster, pods, new Map())[2]).toMatch(/quickstart-2 +replica +ready +unknown +unknown/);
  });

  it("offer a switchover to a standby, as the command line plugin asks for it", () => {
    const words = { access: ["export KUBECONFIG=/k"], kubectl: "kubectl --context mine", end: ["npm stop   # end it"] };
    const text = renderNextSteps(cluster, pods, words).join("\n");
    expect(text).toContain("export KUBECONFIG=/k");
    expect(text).toMatch(/^ {2}npm stop {3}# end it$/m);
    expect(text.match(/^ {2}kubectl (?!--context mine -n default )/gm)).toBeNull();
    expect(text).toContain('"targetPrimary":"quickstart-2","phase":"Switchover in progress"');
    expect(text).toContain("delete pod quickstart-1");
    expect(text).toContain('{"spec":{"instances":3}}');
  });
});
