/** Quotes one word so that a POSIX shell, and {@link splitShellWords}, give it back unchanged. */
export function quoteShellWord(word: string): string {
  if (word !== "" && /^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Joins words into one line of shell text. */
export function joinShellWords(words: readonly string[]): string {
  return words.map(quoteShellWord).join(" ");
}

/** Splits text into words by the POSIX quoting rules, without any expansion. Throws on an open quote or a trailing backslash. */
export function splitShellWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let index = 0;
  while (index < text.length) {
    const char = text.charAt(index);
    if (/[ \t\n\r]/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      index += 1;
    } else if (char === "#" && word === undefined) {
      const end = text.indexOf("\n", index);
      index = end === -1 ? text.length : end;
    } else {
      const piece = readPiece(text, index);
      word = (word ?? "") + piece.value;
      index = piece.next;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

function readPiece(text: string, start: number): { value: string; next: number } {
  const char = text.charAt(start);
  if (char === "'") {
    const end = text.indexOf("'", start + 1);
    if (end === -1) throw new Error("shell text ends inside single quotes; close the quote");
    return { value: text.slice(start + 1, end), next: end + 1 };
  }
  if (char === '"') return readDoubleQuoted(text, start + 1);
  if (char === "\\") {
    if (start + 1 >= text.length) throw new Error("shell text ends with a backslash; remove or double it");
    const next = text.charAt(start + 1);
    return { value: next === "\n" ? "" : next, next: start + 2 };
  }
  return { value: char, next: start + 1 };
}

function readDoubleQuoted(text: string, start: number): { value: string; next: number } {
  let value = "";
  for (let index = start; index < text.length; index += 1) {
    const char = text.charAt(index);
    if (char === '"') return { value, next: index + 1 };
    if (char !== "\\") {
      value += char;
      continue;
    }
    const next = text.charAt(index + 1);
    // Inside double quotes a backslash escapes these alone.
    if (next === "\n") index += 1;
    else if (next !== "" && '"\\$`'.includes(next)) {
      value += next;
      index += 1;
    } else value += char;
  }
  throw new Error("shell text ends inside double quotes; close the quote");
}
