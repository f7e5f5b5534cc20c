import { App, Chart, Testing } from "cdk8s";
import { expect, test } from "vitest";
import { Cluster as ClusterConstruct } from "../../../constructs/index.ts";
import { siteOf, type TwoSitesOptions } from "../../../examples/two-sites.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";

function cluster(self: "east" | "west", options: TwoSitesOptions): Cluster {
  const app = new App();
  siteOf(app, self, options);
  const objects = app.charts.flatMap((chart) => Testing.synth(chart)) as Cluster[];
  const found = objects.find((it) => it.kind === "Cluster");
  if (!found) throw new Error("no Cluster was synthesized");
  return found;
}

const promotionToken = Buffer.from(
  JSON.stringify({
    latestCheckpointTimelineID: "1",
    redoWalFile: "000000010000000000000005",
    databaseSystemIdentifier: "7000000000000000001",
    latestCheckpointREDOLocation: "0/5000028",
    timeOfLatestCheckpoint: "Fri 02 Jan 2026 03:04:05 AM UTC",
    operatorVersion: "1.30.0",
  }),
).toString("base64");

test("each site follows the other while that is the primary", () => {
  expect(cluster("west", { primary: "east" }).spec.replica).toEqual({ self: "west", primary: "east", source: "east" });
  expect(cluster("east", { primary: "east" }).spec.replica).toEqual({ self: "east", primary: "east", source: "west" });
});

test("a token goes only where it promotes", () => {
  const change = { primary: "west", promotionToken } as const;
  expect(cluster("west", change).spec.replica?.promotionToken).toBe(promotionToken);
  expect(cluster("east", change).spec.replica).not.toHaveProperty("promotionToken");
});

test("a token that is none does not get into a manifest", () => {
  expect(() => cluster("west", { primary: "west", promotionToken: "bm8=" })).toThrow("promotion token");
});

test("a site that was made by initdb may be told to follow; only the API server knows whether it is there", () => {
  const app = new App();
  const chart = new Chart(app, "demoted");
  new ClusterConstruct(chart, "demoted", {
    instances: 1,
    storage: "1Gi",
    spec: {
      bootstrap: { initdb: { database: "app", owner: "app" } },
      replica: { primary: "other", source: "other" },
      externalClusters: ["other", "demoted"].map((name) => ({ name, connectionParameters: { host: name } })),
    },
  });
  expect(() => Testing.synth(chart)).not.toThrow();
});
