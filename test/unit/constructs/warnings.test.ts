import { Chart, Testing } from "cdk8s";
import { afterEach, expect, test, vi } from "vitest";
import { Cluster, ScheduledBackup } from "../../../constructs/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("what the webhooks would warn of is told once at synth, noted on the construct, and written all the same", () => {
  const told = vi.spyOn(process, "emitWarning").mockReturnValue();
  const chart = new Chart(Testing.app(), "test");
  const spec = { cluster: { name: "shop" }, backupOwnerReference: "self" } as const;
  const five = new ScheduledBackup(chart, "nightly", { spec: { ...spec, schedule: "0 2 * * *" } });
  const six = new ScheduledBackup(chart, "weekly", { spec: { ...spec, schedule: "0 0 2 * * 0" } });
  const cluster = new Cluster(chart, "shop", {
    storage: "1Gi",
    spec: { managed: { roles: [{ name: "app", passwordSecret: { name: "other" } }] } },
  });
  expect(Testing.synth(chart)).toHaveLength(3);
  Testing.synth(chart);
  const warnings = [
    'ScheduledBackup "nightly": Schedule parameter may not have the right number of arguments (usually six arguments are needed)',
    'Cluster "shop": spec.managed.roles gives app, who owns the application\'s database, Secret other: Secret shop-app is not applied',
  ];
  expect(told.mock.calls.map(([text]) => text)).toEqual(warnings);
  expect([five, six, cluster].flatMap(({ node }) => node.metadata.map(({ data }) => data as string))).toEqual(warnings);
});
