// CRC-64 (ECMA-182, reflected), which xz files have by default, in halves of 32 bits.
const low = new Uint32Array(256);
const high = new Uint32Array(256);

for (let byte = 0; byte < 256; byte++) {
  let [l, h] = [byte, 0];
  for (let bit = 0; bit < 8; bit++) {
    const odd = l & 1;
    l = ((l >>> 1) | (h << 31)) >>> 0;
    h >>>= 1;
    if (odd) {
      l = (l ^ 0xd787_0f42) >>> 0;
      h = (h ^ 0xc96c_5795) >>> 0;
    }
  }
  low[byte] = l;
  high[byte] = h;
}

/** A checksum that grows with its bytes. */
export class Crc64 {
  #low = 0xffff_ffff;
  #high = 0xffff_ffff;

  update(bytes: Uint8Array): void {
    let [l, h] = [this.#low, this.#high];
    for (let at = 0; at < bytes.length; at++) {
      const entry = (l ^ (bytes[at] as number)) & 0xff;
      l = ((l >>> 8) | (h << 24)) ^ (low[entry] as number);
      h = (h >>> 8) ^ (high[entry] as number);
    }
    this.#low = l;
    this.#high = h;
  }

  /** Eight bytes, the lowest first. */
  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(~this.#low >>> 0, 0);
    bytes.writeUInt32LE(~this.#high >>> 0, 4);
    return bytes;
  }
}
