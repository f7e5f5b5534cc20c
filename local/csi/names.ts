/** Name by which Kubernetes knows our volume driver. */
export const driverName = "loop.csi.cnpg-ts.dev";
/** Label of a node that says whose disk its volumes are on. */
export const topologyKey = `topology.${driverName}/node`;
/** StorageClass of the driver: volumes of a real size that can grow while they are used. */
export const expandableStorageClass = "csi-loop";
