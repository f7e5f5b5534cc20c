import { createHash, createHmac, pbkdf2Sync } from "node:crypto";

/** Rounds PostgreSQL itself uses by default. */
export const scramIterations = 4096;

/** Length of the salt in bytes. */
export const scramSaltBytes = 16;

/**
 * The form in which PostgreSQL stores a password (`SCRAM-SHA-256$…`), so that the clear text never travels in a statement.
 * Salt: {@link scramSaltBytes} random bytes.
 */
export function encodeScramPassword(password: string, salt: Uint8Array, iterations = scramIterations): string {
  const salted = pbkdf2Sync(preparePassword(password), salt, iterations, 32, "sha256");
  const clientKey = hmac(salted, "Client Key");
  const storedKey = createHash("sha256").update(clientKey).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${Buffer.from(salt).toString("base64")}$${storedKey}:${serverKey}`;
}

/** Whether the text is a stored form already (SCRAM or MD5), which PostgreSQL takes as it is. */
export function isEncodedPassword(password: string): boolean {
  return (
    /^md5[0-9a-f]{32}$/.test(password) ||
    /^SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$/.test(password)
  );
}

/** Rounds, salt and keys of a stored form; `undefined` for anything else. */
export function parseScramPassword(
  encoded: string,
): { iterations: number; salt: Buffer; storedKey: string; serverKey: string } | undefined {
  const match = /^SCRAM-SHA-256\$(\d+):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{44}):([A-Za-z0-9+/=]{44})$/.exec(encoded);
  if (!match?.[1] || !match[2] || !match[3] || !match[4]) return undefined;
  return {
    iterations: Number(match[1]),
    salt: Buffer.from(match[2], "base64"),
    storedKey: match[3],
    serverKey: match[4],
  };
}

/**
 * The part of SASLprep that changes passwords in practice: other spaces become a space, characters "commonly mapped to
 * nothing" vanish, then NFKC. Text with a character SASLprep forbids is taken as it is, which is what the server does too.
 */
function preparePassword(password: string): string {
  // ASCII needs no preparation, control characters included (they are forbidden, hence raw).
  if (/^[\p{ASCII}]*$/u.test(password)) return password;
  const mapped = password.replace(otherSpaces, " ").replace(mappedToNothing, "").normalize("NFKC");
  return mapped === "" || forbidden.test(mapped) || breaksBidi(mapped) ? password : mapped;
}

const otherSpaces = /[\u00A0\u1680\u2000-\u200B\u202F\u205F\u3000]/g;
// biome-ignore lint/suspicious/noMisleadingCharacterClass: RFC 3454 table B.1 lists these code points one by one.
const mappedToNothing = /[\u00AD\u034F\u1806\u180B-\u180D\u200C\u200D\u2060\uFE00-\uFE0F\uFEFF]/g;
const forbidden =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what the table forbids.
  /[\u0000-\u001F\u007F-\u009F\u06DD\u070F\u180E\u200E\u200F\u2028-\u202E\u2061-\u2063\u206A-\u206F\u2FF0-\u2FFB\uD800-\uDFFF\uE000-\uF8FF\uFDD0-\uFDEF\uFFF9-\uFFFF]/;

/** RFC 3454 §6: right-to-left text must not mix with left-to-right letters and must begin and end right-to-left. */
function breaksBidi(text: string): boolean {
  const rightToLeft =
    /[\u05BE\u05C0\u05C3\u05D0-\u05F4\u061B-\u064A\u066D-\u0710\u0712-\u07B1\u200F\uFB1D-\uFDFC\uFE70-\uFEFC]/;
  const characters = [...text];
  if (!characters.some((char) => rightToLeft.test(char))) return false;
  if (/[A-Za-z\u00C0-\u024F\u0370-\u0588]/.test(text)) return true;
  return !rightToLeft.test(characters[0] ?? "") || !rightToLeft.test(characters.at(-1) ?? "");
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
