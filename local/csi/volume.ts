// What the driver decides: identities, sizes and places of volumes. No I/O.
import { CsiError } from "./csi-error.ts";
import {
  type CreateVolumeRequest,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapability,
} from "./gen/csi_pb.ts";
import { topologyKey } from "./names.ts";

const mebibyte = 1024n * 1024n;
/** mkfs.xfs makes nothing smaller. */
const smallestBytes = 300n * mebibyte;

export interface VolumeName {
  node: string;
  name: string;
}

/** Identity of a volume, from which its file is found. */
export function formatVolumeId({ node, name }: VolumeName): string {
  return `${node}.${name}`;
}

/** The parts of an identity; one that is not of this form can name no volume of ours. */
export function parseVolumeId(id: string): VolumeName {
  const [, node, name] = /^([a-z0-9-]+)\.([A-Za-z0-9_-]+)$/.exec(id) ?? [];
  if (node === undefined || name === undefined) throw new CsiError("NOT_FOUND", `there is no volume ${id}`);
  return { node, name };
}

interface Range {
  requiredBytes: bigint;
  limitBytes: bigint;
}

/** Size of a volume in bytes: what is asked for in whole mebibytes, and never less than the filesystem needs. */
export function planCapacity(range: Range | undefined): bigint {
  const { requiredBytes = 0n, limitBytes = 0n } = range ?? {};
  if (requiredBytes < 0n || limitBytes < 0n) throw new CsiError("INVALID_ARGUMENT", "a capacity is negative");
  const whole = ((requiredBytes + mebibyte - 1n) / mebibyte) * mebibyte;
  const bytes = whole < smallestBytes ? smallestBytes : whole;
  if (limitBytes > 0n && bytes > limitBytes) {
    throw new CsiError("OUT_OF_RANGE", `the volume needs ${bytes} bytes, which is over the limit of ${limitBytes}`);
  }
  return bytes;
}

/** Why a use of a volume is not served; null when it is. */
export function checkCapability({ accessType, accessMode }: VolumeCapability): string | null {
  if (accessType.case === "block") return "block volumes are not served: ask for volumeMode Filesystem";
  if (accessType.case === "mount" && !["", "xfs"].includes(accessType.value.fsType)) {
    return `filesystem ${accessType.value.fsType} is not served: ask for xfs`;
  }
  switch (accessMode?.mode) {
    case Mode.MULTI_NODE_READER_ONLY:
    case Mode.MULTI_NODE_SINGLE_WRITER:
    case Mode.MULTI_NODE_MULTI_WRITER:
      return "a volume is on the disk of one node: ask for ReadWriteOnce";
    default:
      return null;
  }
}

/** Where and how large a new volume is to be. */
export function planVolume(request: CreateVolumeRequest, nodes: readonly string[]): VolumeName & { bytes: bigint } {
  const { name } = request;
  if (!/^[A-Za-z0-9_-]+$/.test(name)) throw new CsiError("INVALID_ARGUMENT", `${name} can't be a volume's name`);
  if (request.volumeContentSource) throw new CsiError("INVALID_ARGUMENT", "copies of volumes are not served");
  for (const capability of request.volumeCapabilities) {
    const reason = checkCapability(capability);
    if (reason !== null) throw new CsiError("INVALID_ARGUMENT", reason);
  }
  return { name, node: chooseNode(request, nodes), bytes: planCapacity(request.capacityRange) };
}

/** The node that Kubernetes likes best; the first one when it has no wish. */
function chooseNode({ accessibilityRequirements }: CreateVolumeRequest, nodes: readonly string[]): string {
  const wished = [...(accessibilityRequirements?.preferred ?? []), ...(accessibilityRequirements?.requisite ?? [])];
  const names = wished.length > 0 ? wished.map(({ segments }) => segments[topologyKey] ?? "") : nodes;
  const node = names.find((each) => nodes.includes(each));
  if (node === undefined) throw new CsiError("RESOURCE_EXHAUSTED", `none of the nodes ${names.join(", ")} is here`);
  return node;
}
