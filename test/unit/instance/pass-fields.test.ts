import { expect, test } from "vitest";
import { passFields } from "../../../src/instance/pass-fields.ts";

const settings = { podName: "c-1", clusterName: "c" };
const key = { namespace: "ns", name: "orders" };

test("the records of a pass name its object, its kind and this instance", () => {
  expect(passFields("DatabaseRole", key, settings)).toEqual({
    controller: "instance-database-role",
    controllerGroup: "postgresql.cnpg.io",
    controllerKind: "DatabaseRole",
    DatabaseRole: { name: "orders", namespace: "ns" },
    namespace: "ns",
    name: "orders",
    reconcileID: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    instance: "c-1",
    cluster: "c",
  });
});

test.each([
  ["Cluster", "instance-cluster"],
  ["Database", "instance-database"],
  ["Publication", "instance-publication"],
  ["Subscription", "instance-subscription"],
])("who looks after a %s is called %s", (kind, controller) => {
  expect(passFields(kind, key, settings)["controller"]).toBe(controller);
});

test("each pass has an id of its own", () => {
  const ids = [1, 2].map(() => passFields("Cluster", key, settings)["reconcileID"]);
  expect(ids[0]).not.toBe(ids[1]);
});
