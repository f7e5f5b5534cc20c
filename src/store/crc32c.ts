// CRC-32C (Castagnoli), the checksum of Snappy's frames.
const tables = buildTables();

function buildTables(): readonly Uint32Array[] {
  const first = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
    first[byte] = value >>> 0;
  }
  const all = [first];
  for (let slice = 1; slice < 4; slice++) {
    const before = all[slice - 1] ?? first;
    all.push(before.map((value) => (value >>> 8) ^ (first[value & 0xff] ?? 0)));
  }
  return all;
}

/** Unsigned checksum of bytes. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3] = tables as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
  let crc = -1;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    const word =
      crc ^
      ((bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24));
    crc =
      (t3[word & 0xff] as number) ^
      (t2[(word >>> 8) & 0xff] as number) ^
      (t1[(word >>> 16) & 0xff] as number) ^
      (t0[word >>> 24] as number);
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[at] as number)) & 0xff] as number);
  return (crc ^ -1) >>> 0;
}
