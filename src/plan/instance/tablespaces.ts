// Evaluation of spec.tablespaces against what PostgreSQL has (reference: declarative objects §4).
import { defaultTablespaceOwner } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { tablespacePvcName } from "../../api/names.ts";

/** An entry of `status.tablespacesStatus`. */
export type TablespaceState = NonNullable<NonNullable<Cluster["status"]>["tablespacesStatus"]>[number];

export interface TablespacesView {
  cluster: Cluster;
  podName: string;
  /** Owners by tablespace, of every tablespace that the server has. */
  owners: ReadonlyMap<string, string>;
  /** Tablespaces whose volume is mounted in this pod. */
  mounted: ReadonlySet<string>;
}

export type TablespaceStep =
  | { kind: "keep" | "create" | "changeOwner"; name: string; owner: string }
  | { kind: "defer"; name: string; owner: string; reason: string };

/** What each tablespace needs, in the order of the spec; a tablespace that the spec does not name is never dropped. */
export function planTablespaces({ cluster, podName, owners, mounted }: TablespacesView): TablespaceStep[] {
  const healthy = new Set(cluster.status?.healthyPVC ?? []);
  // Each standby replays the creation, and stops for good where the folder is not there.
  const instances = new Set([podName, ...(cluster.status?.instanceNames ?? [])]);
  return (cluster.spec.tablespaces ?? []).map((wanted): TablespaceStep => {
    const { name } = wanted;
    const owner = wanted.owner?.name || defaultTablespaceOwner(cluster);
    const current = owners.get(name);
    if (current !== undefined) return { kind: current === owner ? "keep" : "changeOwner", name, owner };
    if (!mounted.has(name)) return { kind: "defer", name, owner, reason: "deferred until mount point is created" };
    if (![...instances].every((instance) => healthy.has(tablespacePvcName(instance, name)))) {
      return { kind: "defer", name, owner, reason: "deferred until all required PVCs are healthy" };
    }
    return { kind: "create", name, owner };
  });
}

/** The entry of the status after a step; `failure` is why the server refused it. */
export function tablespaceState(step: TablespaceStep, failure?: string): TablespaceState {
  const { kind, name, owner } = step;
  if (kind === "defer") return { name, owner, state: "pending", error: step.reason };
  if (failure === undefined) return { name, owner, state: "reconciled" };
  const doing = kind === "create" ? "creating" : "updating";
  return { name, owner, state: "pending", error: `while ${doing} tablespace ${name}: ${failure}` };
}
