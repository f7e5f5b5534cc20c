import { mkdirSync, rmdirSync } from "node:fs";
import { CsiError } from "./csi-error.ts";
import { Node, NodeServiceCapability_RPC_Type as Type, VolumeUsage_Unit as Unit } from "./gen/csi_pb.ts";
import { topologyKey } from "./names.ts";
import type { NodeMounts } from "./node-mounts.ts";
import type { OneAtATime } from "./one-at-a-time.ts";
import type { Pool } from "./pool.ts";
import { answer, type Handler } from "./serve.ts";
import { checkCapability, parseVolumeId } from "./volume.ts";

/** Mounts the volumes of one node and grows their filesystems; asked by its kubelet. */
export function nodeHandlers(node: string, mounts: NodeMounts, pool: Pool, turns: OneAtATime): Handler[] {
  const inTurn = (volumeId: string, work: () => Promise<void>) =>
    turns.run(volumeId, async () => {
      await work();
      return {};
    });
  return [
    answer(Node.method.nodeGetInfo, () => ({
      nodeId: node,
      accessibleTopology: { segments: { [topologyKey]: node } },
    })),
    answer(Node.method.nodeGetCapabilities, () => ({
      capabilities: [
        Type.STAGE_UNSTAGE_VOLUME,
        Type.GET_VOLUME_STATS,
        Type.EXPAND_VOLUME,
        Type.SINGLE_NODE_MULTI_WRITER,
      ].map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    })),
    answer(Node.method.nodeStageVolume, ({ volumeId, stagingTargetPath, volumeCapability }) =>
      inTurn(volumeId, async () => {
        const reason = volumeCapability ? checkCapability(volumeCapability) : null;
        if (reason !== null) throw new CsiError("INVALID_ARGUMENT", reason);
        const file = pool.require(parseVolumeId(volumeId));
        if (mounts.at(stagingTargetPath)) return;
        mkdirSync(stagingTargetPath, { recursive: true });
        // The loop device ends with its last mount, whoever ends that: nothing can be left of it. Freed blocks go back
        // to the disk that the file is on.
        await mounts.command("mount", ["-t", "xfs", "-o", "loop,discard", file, stagingTargetPath]);
      }),
    ),
    answer(Node.method.nodeUnstageVolume, ({ volumeId, stagingTargetPath }) =>
      inTurn(volumeId, () => mounts.remove(stagingTargetPath)),
    ),
    answer(Node.method.nodePublishVolume, ({ volumeId, stagingTargetPath, targetPath, readonly }) =>
      inTurn(volumeId, async () => {
        if (!mounts.at(stagingTargetPath)) {
          throw new CsiError("FAILED_PRECONDITION", `volume ${volumeId} is not mounted at ${stagingTargetPath}`);
        }
        if (mounts.at(targetPath)) return;
        mkdirSync(targetPath, { recursive: true });
        await mounts.command("mount", ["-o", readonly ? "bind,ro" : "bind", stagingTargetPath, targetPath]);
      }),
    ),
    answer(Node.method.nodeUnpublishVolume, ({ volumeId, targetPath }) =>
      inTurn(volumeId, async () => {
        await mounts.remove(targetPath);
        removeFolder(targetPath);
      }),
    ),
    answer(Node.method.nodeGetVolumeStats, async ({ volumeId, volumePath }) => {
      if (!mounts.at(volumePath)) throw new CsiError("NOT_FOUND", `volume ${volumeId} is not at ${volumePath}`);
      const { bsize, blocks, bfree, bavail, files, ffree } = await mounts.statfs(volumePath);
      return {
        usage: [
          { unit: Unit.BYTES, total: blocks * bsize, available: bavail * bsize, used: (blocks - bfree) * bsize },
          { unit: Unit.INODES, total: files, available: ffree, used: files - ffree },
        ],
      };
    }),
    answer(Node.method.nodeExpandVolume, ({ volumeId, volumePath }) =>
      turns.run(volumeId, async () => {
        const mount = mounts.at(volumePath);
        if (!mount) throw new CsiError("NOT_FOUND", `volume ${volumeId} is not mounted at ${volumePath}`);
        await mounts.command("losetup", ["--set-capacity", mount.source]);
        await mounts.command("xfs_growfs", ["-d", volumePath]);
        return { capacityBytes: pool.bytes(parseVolumeId(volumeId)) };
      }),
    ),
  ];
}

/** A folder with something in it was no mount point of ours; the kubelet then says so itself. */
function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
