import { expect, it } from "vitest";
import { aHealthyCluster, plan } from "./fixtures.ts";

it.each([
  ["is looked for again soon when it is wanted", true, 20_000],
  ["is not waited for when nobody wants it", false, 60_000],
])("a kind that the API server does not know %s", (_, enablePodMonitor, expected) => {
  const { cluster, observed } = aHealthyCluster({ monitoring: { enablePodMonitor } });
  const { podMonitor: _known, ...withoutKind } = observed;
  expect(plan(cluster, withoutKind).requeueAfterMs).toBe(expected);
});
