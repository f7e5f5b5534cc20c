import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { reconcilePrimarySlots } from "../../../src/instance/reconcile/slots.ts";
import { captureLogs } from "../../support/log-capture.ts";

const slot = { slot_name: "_cnpg_c_2", active: false, restart_lsn: "0/1", holds_xmin: false };

async function statements(instanceNames: string[] | undefined): Promise<string[]> {
  const seen: string[] = [];
  const sql = {
    query: async (text: string) => {
      seen.push(text);
      return text.includes("pg_replication_slots") ? [slot] : [];
    },
  };
  const context = { settings: { podName: "c-1" }, logger: captureLogs().logger } as unknown as InstanceContext;
  const cluster = {
    metadata: { name: "c" },
    spec: { replicationSlots: { highAvailability: { enabled: true } } },
    status: { currentPrimary: "c-1", ...(instanceNames ? { instanceNames } : {}) },
  } as unknown as Cluster;
  await reconcilePrimarySlots(context, cluster, sql);
  return seen.filter((text) => text.includes("pg_drop"));
}

test("while the instances are not known no slot is dropped", async () => {
  expect(await statements(undefined)).toEqual([]);
  expect(await statements([])).toEqual([]);
});

test("the slot of an instance that is gone is dropped, that of another stays", async () => {
  expect(await statements(["c-1"])).toHaveLength(1);
  expect(await statements(["c-1", "c-2"])).toEqual([]);
});
