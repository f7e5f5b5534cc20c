import { getObject } from "./kubectl.ts";

/** Name by which the volume driver knows the volume of a claim. */
export async function volumeHandle(namespace: string, claim: string): Promise<string> {
  const bound = await getObject<{ spec: { volumeName?: string } }>(namespace, "pvc", claim);
  const volume = await getObject<{ spec: { csi?: { volumeHandle: string } } }>(
    namespace,
    "pv",
    bound?.spec.volumeName ?? "",
  );
  if (!volume?.spec.csi) throw new Error(`the volume of claim ${namespace}/${claim} has no driver of its own`);
  return volume.spec.csi.volumeHandle;
}
