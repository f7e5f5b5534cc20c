import { CsiError } from "./csi-error.ts";
import { Controller, ControllerServiceCapability_RPC_Type as Type } from "./gen/csi_pb.ts";
import { topologyKey } from "./names.ts";
import type { OneAtATime } from "./one-at-a-time.ts";
import type { Pool } from "./pool.ts";
import { answer, type Handler } from "./serve.ts";
import { checkCapability, formatVolumeId, parseVolumeId, planCapacity, planVolume } from "./volume.ts";

/** Makes, grows and removes volumes; asked by csi-provisioner and csi-resizer. */
export function controllerHandlers(pool: Pool, turns: OneAtATime): Handler[] {
  return [
    answer(Controller.method.controllerGetCapabilities, () => ({
      capabilities: [Type.CREATE_DELETE_VOLUME, Type.EXPAND_VOLUME, Type.SINGLE_NODE_MULTI_WRITER].map((type) => ({
        type: { case: "rpc" as const, value: { type } },
      })),
    })),
    answer(Controller.method.createVolume, (request) =>
      turns.run(request.name, async () => {
        const { bytes, ...planned } = planVolume(request, pool.nodes);
        const found = pool.find(planned.name);
        if (!found) await pool.create(planned, bytes);
        const volume = found ?? planned;
        const capacityBytes = pool.bytes(volume);
        if (capacityBytes !== bytes) {
          throw new CsiError("ALREADY_EXISTS", `volume ${volume.name} is there with ${capacityBytes} bytes`);
        }
        const accessibleTopology = [{ segments: { [topologyKey]: volume.node } }];
        return { volume: { volumeId: formatVolumeId(volume), capacityBytes, accessibleTopology } };
      }),
    ),
    answer(Controller.method.deleteVolume, async ({ volumeId }) => {
      // What is no identity of ours names nothing that could be left.
      if (!volumeId.includes(".")) return {};
      const volume = parseVolumeId(volumeId);
      await turns.run(volume.name, async () => pool.remove(volume));
      return {};
    }),
    answer(Controller.method.validateVolumeCapabilities, ({ volumeId, volumeCapabilities }) => {
      pool.require(parseVolumeId(volumeId));
      const reason = volumeCapabilities.map(checkCapability).find((each) => each !== null);
      return reason === undefined ? { confirmed: { volumeCapabilities } } : { message: reason };
    }),
    answer(Controller.method.controllerExpandVolume, async ({ volumeId, capacityRange }) => {
      const volume = parseVolumeId(volumeId);
      return await turns.run(volume.name, async () => {
        pool.grow(volume, planCapacity(capacityRange));
        return { capacityBytes: pool.bytes(volume), nodeExpansionRequired: true };
      });
    }),
  ];
}
