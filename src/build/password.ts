/** Where random bytes come from; the Random port is one. */
export interface ByteSource {
  bytes(length: number): Uint8Array;
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const digits = "0123456789";
const length = 64;
const digitCount = 10;

/** A password of 64 characters: letters of both cases and exactly 10 digits, in random places. */
export function generatePassword(source: ByteSource): string {
  const characters: string[] = [];
  for (let i = 0; i < length; i++) characters.push(pick(i < digitCount ? digits : letters, source));
  for (let i = length - 1; i > 0; i--) {
    const j = below(i + 1, source);
    [characters[i], characters[j]] = [characters[j] as string, characters[i] as string];
  }
  return characters.join("");
}

function pick(alphabet: string, source: ByteSource): string {
  return alphabet.charAt(below(alphabet.length, source));
}

/** An unbiased integer in [0, limit), for limits up to 256. */
function below(limit: number, source: ByteSource): number {
  const usable = 256 - (256 % limit);
  for (;;) {
    const [byte = 0] = source.bytes(1);
    if (byte < usable) return byte % limit;
  }
}
