import type { Cluster } from "../api/generated/cluster.ts";
import type { Store } from "../ports/kube-api.ts";

/** Calls with the UID of each Cluster that is gone, for those who keep something by it. */
export function whenClusterGone(clusters: Pick<Store<Cluster>, "subscribe">, forget: (uid: string) => void): void {
  clusters.subscribe(({ type, object }) => {
    if (type === "deleted") forget(object.metadata.uid ?? "");
  });
}
