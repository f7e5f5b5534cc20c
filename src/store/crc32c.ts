// CRC-32C (Castagnoli), the checksum of Snappy's frames.
import { viewOf } from "./find-matches.ts";

type Table = Int32Array;
type EightTables = [Table, Table, Table, Table, Table, Table, Table, Table];

const tables = buildTables();

function buildTables(): readonly Table[] {
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
    first[byte] = value;
  }
  const all = [first];
  for (let slice = 1; slice < 8; slice++) {
    const before = all[slice - 1] ?? first;
    all.push(before.map((value) => (value >>> 8) ^ (first[value & 0xff] ?? 0)));
  }
  return all;
}

/** Unsigned checksum of bytes. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as EightTables;
  const view = viewOf(bytes);
  let crc = -1;
  let at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    const low = crc ^ view.getInt32(at, true);
    const high = view.getInt32(at + 4, true);
    crc =
      (t7[low & 0xff] as number) ^
      (t6[(low >>> 8) & 0xff] as number) ^
      (t5[(low >>> 16) & 0xff] as number) ^
      (t4[low >>> 24] as number) ^
      (t3[high & 0xff] as number) ^
      (t2[(high >>> 8) & 0xff] as number) ^
      (t1[(high >>> 16) & 0xff] as number) ^
      (t0[high >>> 24] as number);
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[at] as number)) & 0xff] as number);
  return (crc ^ -1) >>> 0;
}
