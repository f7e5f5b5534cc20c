import { expect } from "vitest";
import type { FailoverQuorum } from "../../../src/api/generated/failoverquorum.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { Scene, World } from "./world.ts";

/** Synchronous replication under which a failover asks for the record. */
export const synchronous = { method: "any" as const, number: 1, failoverQuorum: true };

/** Writes the record of whom commits wait for, as the primary of that cluster does. */
export async function writeQuorum(
  { api }: World,
  { namespace }: Scene,
  name: string,
  status: NonNullable<FailoverQuorum["status"]>,
): Promise<void> {
  const patch = { type: "merge", body: { status } } as const;
  await api.patch(resources.failoverQuorums, { namespace, name }, patch, { subresource: "status" });
}

/** Waits until the operator has asked that instance a few times more. */
export async function somePasses({ node }: Scene, instance: string): Promise<void> {
  const calls = () => node.instances.get(instance)?.calls ?? 0;
  const before = calls();
  await expect.poll(calls, { timeout: 30_000 }).toBeGreaterThan(before + 3);
}
