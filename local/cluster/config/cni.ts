/** Text of the CNI network list of a node. */
export function renderCniConfig(podSubnet: string, addressesFolder: string): string {
  return JSON.stringify(
    {
      cniVersion: "1.0.0",
      name: "cnpg-ts",
      plugins: [
        {
          // Point to point: traffic between pods of one node is routed, so a Service whose pod is on the same node
          // works without the kernel's bridge filter.
          type: "ptp",
          ipam: {
            type: "host-local",
            ranges: [[{ subnet: podSubnet }]],
            routes: [{ dst: "0.0.0.0/0" }],
            dataDir: addressesFolder,
          },
        },
      ],
    },
    null,
    2,
  );
}
