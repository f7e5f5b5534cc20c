import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { phases } from "../../src/api/phases.ts";
import { createCluster, type TestCluster } from "./support/cluster.ts";
import { apply, kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";

function clusterObject(namespace: string, name: string, spec: object): object {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name, namespace },
    spec: { instances: 1, imageName: "localhost/postgresql:17", storage: { size: "1Gi" }, ...spec },
  };
}

/** Rejections by schema or webhook: what the user is told names the field. */
const refused: readonly { what: string; name: string; spec: object; says: RegExp }[] = [
  { what: "no instances", name: "none", spec: { instances: 0 }, says: /spec\.instances/ },
  {
    what: "a wrong volume size",
    name: "size",
    spec: { storage: { size: "1Gigabyte" } },
    says: /spec\.storage\.size.*Size value isn't valid/,
  },
  {
    what: "an image without a version",
    name: "latest",
    spec: { imageName: "localhost/postgresql:latest" },
    says: /spec\.imageName.*latest/,
  },
  { what: "a name over 50 characters", name: "n".repeat(51), spec: {}, says: /maximum length of a cluster name is 50/ },
  {
    what: "a parameter that is not the user's",
    name: "fixed",
    spec: { postgresql: { parameters: { port: "5433" } } },
    says: /postgresql\.parameters\.port/,
  },
  {
    what: "two bootstrap methods",
    name: "two",
    spec: { bootstrap: { initdb: {}, recovery: {} } },
    says: /Only one bootstrap method/,
  },
];

describe("bad input", () => {
  let bystander: TestCluster;

  beforeAll(async () => {
    bystander = await createCluster("bystander", { instances: 1 });
    await bystander.healthy(1);
  });
  afterAll(async () => {
    await bystander?.remove();
  });

  test.each(refused)("$what is refused with the field and the rule", async ({ name, spec, says }) => {
    await expect(apply(clusterObject(bystander.namespace, name, spec))).rejects.toThrow(says);
  });

  test("an image that does not exist leaves a clear phase and disturbs nobody", async () => {
    await apply(clusterObject(bystander.namespace, "noimage", { imageName: "localhost/absent:17", instances: 1 }));
    await waitFor("phase of the cluster without image", 60_000, async () => {
      const text = await kubectl([
        "get",
        "cluster",
        "noimage",
        "-n",
        bystander.namespace,
        "-o",
        "jsonpath={.status.phase}",
      ]);
      return text === phases.settingUpPrimary;
    });
    const other = await createCluster("newcomer", { instances: 1 });
    try {
      await other.healthy(1);
      await bystander.healthy(1);
    } finally {
      await other.remove();
    }
  });

  test("an affinity that no node meets leaves the pod pending and a phase that says so", async () => {
    await apply(
      clusterObject(bystander.namespace, "nowhere", {
        instances: 1,
        affinity: { nodeSelector: { "example.com/absent": "yes" } },
      }),
    );
    await waitFor("event about scheduling", 60_000, async () => {
      const events = await kubectl(["get", "events", "-n", bystander.namespace, "-o", "jsonpath={.items[*].reason}"]);
      return events.includes("FailedScheduling");
    });
    const phase = await kubectl([
      "get",
      "cluster",
      "nowhere",
      "-n",
      bystander.namespace,
      "-o",
      "jsonpath={.status.phase}",
    ]);
    expect(phase).toBe(phases.settingUpPrimary);
    await bystander.healthy(1);
  });
});
