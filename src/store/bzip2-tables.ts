/** Marks of a block and of the end of a stream, 48 bits as two halves. */
export const blockMark = [0x314159, 0x265359] as const;
export const endMark = [0x177245, 0x385090] as const;
/** Symbols coded by one table before the next one is chosen. */
export const groupSymbols = 50;

const table = buildTable();

function buildTable(): Uint32Array {
  const values = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte << 24;
    for (let bit = 0; bit < 8; bit++) value = value & 0x8000_0000 ? (value << 1) ^ 0x04c11db7 : value << 1;
    values[byte] = value >>> 0;
  }
  return values;
}

/** One byte into bzip2's CRC, which begins with -1 and ends inverted. */
export function crcStep(crc: number, byte: number): number {
  return (crc << 8) ^ (table[((crc >>> 24) ^ byte) & 0xff] as number);
}

/** The stream's CRC after another block. */
export function combineCrc(combined: number, block: number): number {
  return (((combined << 1) | (combined >>> 31)) ^ block) >>> 0;
}
