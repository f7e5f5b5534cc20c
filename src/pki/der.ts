/** Writes one element: tag, length, content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), derLength(body.length), body]);
}

export const sequence = (...content: readonly Uint8Array[]) => der(0x30, ...content);
export const set = (...content: readonly Uint8Array[]) => der(0x31, ...content);
export const octetString = (content: Uint8Array) => der(0x04, content);
export const utf8String = (text: string) => der(0x0c, Buffer.from(text, "utf8"));
export const boolean = (value: boolean) => der(0x01, Buffer.from([value ? 0xff : 0]));
export const nullValue = () => der(0x05);

/** A constructed, explicitly tagged element. */
export const explicit = (number: number, ...content: readonly Uint8Array[]) => der(0xa0 | number, ...content);

/** An implicitly tagged primitive element. */
export const implicit = (number: number, content: Uint8Array) => der(0x80 | number, content);

/** A bit string; `unused` counts the bits of the last byte that say nothing. */
export const bitString = (content: Uint8Array, unused = 0) => der(0x03, Buffer.from([unused]), content);

/** A non-negative integer from big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = Buffer.from(bytes.subarray(start));
  // A leading one bit would make the number negative.
  return (digits[0] ?? 0) & 0x80 ? der(0x02, Buffer.from([0]), digits) : der(0x02, digits);
}

/** An object identifier in dotted form. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** A time in whole seconds; two-digit years end with 2049. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

/** One element as it stands in a larger encoding. */
export interface DerElement {
  tag: number;
  /** Tag, length and content. */
  raw: Buffer;
  content: Buffer;
}

/** Splits the content of a constructed element into its elements; throws when it is malformed. */
export function readElements(bytes: Uint8Array): DerElement[] {
  const buffer = Buffer.from(bytes);
  const elements: DerElement[] = [];
  for (let offset = 0; offset < buffer.length; ) {
    const element = readElement(buffer.subarray(offset));
    elements.push(element);
    offset += element.raw.length;
  }
  return elements;
}

function readElement(buffer: Buffer): DerElement {
  const [tag, first] = buffer;
  if (tag === undefined || first === undefined) throw new Error("truncated DER element");
  const lengthBytes = first & 0x80 ? first & 0x7f : 0;
  if (lengthBytes > 4 || first === 0x80) throw new Error("unsupported length of a DER element");
  const length = lengthBytes === 0 ? first : buffer.readUIntBE(2, lengthBytes);
  const start = 2 + lengthBytes;
  if (buffer.length < start + length) throw new Error("truncated DER element");
  return { tag, raw: buffer.subarray(0, start + length), content: buffer.subarray(start, start + length) };
}

function derLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}
