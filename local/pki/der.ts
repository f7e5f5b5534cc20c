/** Builders for the few DER types that a certificate is made of. */

/** One value with its tag and length. */
export function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), derLength(body.length), body]);
}

export const sequence = (...content: Buffer[]) => der(0x30, ...content);
export const set = (...content: Buffer[]) => der(0x31, ...content);
export const octetString = (content: Buffer) => der(0x04, content);
export const utf8String = (text: string) => der(0x0c, Buffer.from(text));
export const truth = () => der(0x01, Buffer.from([0xff]));
/** A constructed value with a context-specific tag. */
export const tagged = (number: number, ...content: Buffer[]) => der(0xa0 + number, ...content);
/** A primitive value with a context-specific tag. */
export const taggedPrimitive = (number: number, content: Buffer) => der(0x80 + number, content);

/** A bit string whose unused trailing bits are given by their count. */
export const bitString = (content: Buffer, unusedBits = 0) => der(0x03, Buffer.from([unusedBits]), content);

/** A non-negative integer from its big-endian bytes. */
export function integer(bytes: Buffer): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const trimmed = bytes.subarray(start);
  return der(0x02, ...((trimmed[0] ?? 0) >= 0x80 ? [Buffer.from([0])] : []), trimmed);
}

export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

/** A point in time to the second: UTCTime before 2050 and GeneralizedTime after, as certificates require. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

function derLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}
