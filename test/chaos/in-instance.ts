import { kubectl } from "../e2e/support/kubectl.ts";
import type { PlacedInstance, Scene } from "./fault.ts";

/** Runs a script in an instance's container, as PostgreSQL's user. */
export function inInstance({ cluster }: Scene, { name }: PlacedInstance, script: string): Promise<string> {
  return kubectl(["exec", "-n", cluster.namespace, name, "-c", "postgres", "--", "bash", "-c", script]);
}

/** Deletes pods as a node does that is gone: without waiting for anything to end. */
export function deleteByForce(namespace: string, ...which: readonly string[]): Promise<string> {
  return kubectl(["delete", "pod", "-n", namespace, ...which, "--force", "--grace-period=0"]);
}

/** Has a pod made anew in order; it may have been given up meanwhile. */
export function renewPod(namespace: string, name: string): Promise<string> {
  return kubectl(["delete", "pod", name, "-n", namespace, "--wait=false", "--ignore-not-found"]);
}
