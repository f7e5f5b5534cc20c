/** A value in Python's literal syntax. A tuple is told apart from a list, as Barman writes both. */
export type PythonValue =
  | { kind: "none" }
  | { kind: "bool"; value: boolean }
  | { kind: "int"; text: string }
  | { kind: "float"; text: string }
  | { kind: "string"; value: string }
  | { kind: "list" | "tuple"; items: PythonValue[] }
  | { kind: "dict"; entries: [PythonValue, PythonValue][] };

/** Reads one literal; throws with the place when the text is none. */
export function parsePythonLiteral(text: string): PythonValue {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

/** Writes a literal as Python's `repr` does. */
export function formatPythonLiteral(value: PythonValue): string {
  switch (value.kind) {
    case "none":
      return "None";
    case "bool":
      return value.value ? "True" : "False";
    case "int":
    case "float":
      return value.text;
    case "string":
      return formatPythonString(value.value);
    case "list":
      return `[${value.items.map(formatPythonLiteral).join(", ")}]`;
    case "tuple":
      return value.items.length === 1
        ? `(${value.items.map(formatPythonLiteral).join("")},)`
        : `(${value.items.map(formatPythonLiteral).join(", ")})`;
    case "dict":
      return `{${value.entries.map(([k, v]) => `${formatPythonLiteral(k)}: ${formatPythonLiteral(v)}`).join(", ")}}`;
  }
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r" };

/** Writes a string as Python's `repr` does: single quotes, double ones only around text with single ones. */
export function formatPythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let body = "";
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (char === quote) body += `\\${char}`;
    else if (escapes[char] !== undefined) body += escapes[char];
    else body += isPrintable(code) ? char : escapeCode(code);
  }
  return `${quote}${body}${quote}`;
}

/** Python prints everything but controls, separators other than the space, surrogates and unassigned code points. */
function isPrintable(code: number): boolean {
  if (code === 0x20) return true;
  return !/^[\p{C}\p{Z}]$/u.test(String.fromCodePoint(code));
}

function escapeCode(code: number): string {
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

const simpleEscapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "\n": "",
};

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): PythonValue {
    this.#space();
    const char = this.#text[this.#at];
    if (char === "'" || char === '"') return { kind: "string", value: this.#strings() };
    if (char === "[") return { kind: "list", items: this.#items("]").items };
    if (char === "(") return this.#tuple();
    if (char === "{") return this.#dict();
    return this.#word();
  }

  end(): void {
    this.#space();
    if (this.#at !== this.#text.length) this.#fail("the end");
  }

  #tuple(): PythonValue {
    const { items, comma } = this.#items(")");
    const [only] = items;
    // Brackets around one value without a comma only group.
    return items.length === 1 && !comma && only ? only : { kind: "tuple", items };
  }

  #items(close: string): { items: PythonValue[]; comma: boolean } {
    this.#at += 1;
    const items: PythonValue[] = [];
    let comma = false;
    for (;;) {
      this.#space();
      if (this.#take(close)) return { items, comma };
      if (items.length > 0 && !comma) this.#fail(`"," or "${close}"`);
      items.push(this.value());
      this.#space();
      comma = this.#take(",");
    }
  }

  #dict(): PythonValue {
    this.#at += 1;
    const entries: [PythonValue, PythonValue][] = [];
    let comma = true;
    for (;;) {
      this.#space();
      if (this.#take("}")) return { kind: "dict", entries };
      if (!comma) this.#fail('"," or "}"');
      const key = this.value();
      this.#space();
      if (!this.#take(":")) this.#fail('":"');
      entries.push([key, this.value()]);
      this.#space();
      comma = this.#take(",");
    }
  }

  #word(): PythonValue {
    const match = /[A-Za-z]+|[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?/y;
    match.lastIndex = this.#at;
    const word = match.exec(this.#text)?.[0];
    if (word === undefined) this.#fail("a value");
    this.#at += word.length;
    if (word === "None") return { kind: "none" };
    if (word === "True" || word === "False") return { kind: "bool", value: word === "True" };
    if (/^[+-]?\d[\d_]*$/.test(word)) return { kind: "int", text: word.replaceAll("_", "") };
    if (/^[A-Za-z]/.test(word)) this.#fail(`a value instead of ${word}`);
    return { kind: "float", text: word.replaceAll("_", "") };
  }

  /** Adjacent strings are one, as in Python. */
  #strings(): string {
    let value = "";
    do {
      value += this.#string();
      this.#space();
    } while (this.#text[this.#at] === "'" || this.#text[this.#at] === '"');
    return value;
  }

  #string(): string {
    const quote = this.#text[this.#at] ?? "";
    this.#at += 1;
    let value = "";
    for (;;) {
      const char = this.#text[this.#at];
      if (char === undefined) this.#fail(`a closing ${quote}`);
      this.#at += 1;
      if (char === quote) return value;
      value += char === "\\" ? this.#escape() : char;
    }
  }

  #escape(): string {
    const char = this.#text[this.#at] ?? "";
    this.#at += 1;
    const simple = simpleEscapes[char];
    if (simple !== undefined) return simple;
    const digits = { x: 2, u: 4, U: 8 }[char];
    if (digits !== undefined) {
      const hex = this.#text.slice(this.#at, this.#at + digits);
      if (!/^[0-9a-fA-F]+$/.test(hex) || hex.length !== digits) this.#fail(`${digits} hex digits`);
      this.#at += digits;
      const code = Number.parseInt(hex, 16);
      if (code > 0x10ffff) this.#fail("a code point");
      return String.fromCodePoint(code);
    }
    const octal = /^[0-7]{1,3}/.exec(this.#text.slice(this.#at - 1))?.[0];
    if (octal !== undefined) {
      this.#at += octal.length - 1;
      return String.fromCodePoint(Number.parseInt(octal, 8));
    }
    return `\\${char}`;
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }

  #fail(expected: string): never {
    throw new Error(`character ${this.#at + 1} of a Python literal: expected ${expected}`);
  }
}
