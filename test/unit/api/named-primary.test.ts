import { expect, test } from "vitest";
import { annotations } from "../../../src/api/labels.ts";
import { type LeaseHistory, namedPrimary } from "../../../src/api/named-primary.ts";
import { aCluster } from "../plan/cluster/fixtures.ts";

const anew: LeaseHistory = { holder: "", transitions: 0, voters: undefined };

const table: [string, LeaseHistory, string, readonly string[], string | undefined][] = [
  ["a lease that was made anew", anew, "c-2", ["c-1", "c-2"], "c-2"],
  ["nobody named", anew, "", ["c-1", "c-2"], undefined],
  ["one named that is not there", anew, "c-9", ["c-1", "c-2"], undefined],
  ["a lease that was given back", { ...anew, transitions: 1 }, "c-2", ["c-1", "c-2"], undefined],
  ["a lease that somebody holds", { ...anew, holder: "c-1" }, "c-2", ["c-1", "c-2"], undefined],
  ["no voter left", { holder: "c-1", transitions: 4, voters: ["c-1", "c-3"] }, "c-2", ["c-2", "c-4"], "c-2"],
  ["one voter left", { holder: "c-1", transitions: 4, voters: ["c-1", "c-3"] }, "c-2", ["c-2", "c-3"], undefined],
  ["no voter left, given back", { holder: "", transitions: 4, voters: ["c-1"] }, "c-2", ["c-2"], "c-2"],
];

test.each(table)("%s", (_, lease, named, instanceNames, expected) => {
  const cluster = aCluster(
    {},
    { instanceNames: [...instanceNames] },
    { annotations: { [annotations.namedPrimary]: named } },
  );
  expect(namedPrimary(cluster, lease)).toBe(expected);
});
