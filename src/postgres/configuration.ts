import { createHash } from "node:crypto";

/** PostgreSQL settings by name. */
export type Settings = ReadonlyMap<string, string>;

const ownPrefix = "cnpg.";

/** Name of the setting that carries the hash of all others, as PostgreSQL has loaded them. */
export const configurationHashName = "cnpg.config_sha256";

const escapes: Record<string, string> = {
  "\\": "\\\\",
  "'": "''",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

/** Quotes a value for a configuration file. */
export function quoteSetting(value: string): string {
  return `'${value.replace(/[\\'\n\r\t\b\f]/g, (char) => escapes[char] ?? char)}'`;
}

/** Undoes {@link quoteSetting}; `undefined` when the text is not a quoted value. */
export function unquoteSetting(text: string): string | undefined {
  if (text.length < 2 || !text.startsWith("'") || !text.endsWith("'")) return undefined;
  const inner = text.slice(1, -1);
  let value = "";
  for (let index = 0; index < inner.length; index += 1) {
    const char = inner.charAt(index);
    if (char === "'") {
      index += 1;
      if (inner.charAt(index) !== "'") return undefined;
      value += "'";
    } else if (char === "\\") {
      index += 1;
      const next = inner.charAt(index);
      if (next === "") return undefined;
      value += unescapes[next] ?? next;
    } else {
      value += char;
    }
  }
  return value;
}

const unescapes: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/** One `name = 'value'` per line, in the order of the map. */
export function formatSettings(settings: Settings): string {
  let text = "";
  for (const [name, value] of settings) text += `${name} = ${quoteSetting(value)}\n`;
  return text;
}

/**
 * Text of `custom.conf`: PostgreSQL's settings sorted, then our own, last the hash over the first part. The hash leaves our
 * own lines out, so that a change in them alone never looks like a new configuration.
 */
export function formatCustomConf(settings: Settings): { text: string; sha256: string } {
  const names = [...settings.keys()].sort(byCodeUnits);
  const plain = formatSettings(
    pick(
      settings,
      names.filter((name) => !name.startsWith(ownPrefix)),
    ),
  );
  const own = formatSettings(
    pick(
      settings,
      names.filter((name) => name.startsWith(ownPrefix) && name !== configurationHashName),
    ),
  );
  const sha256 = createHash("sha256").update(plain).digest("hex");
  return { text: `${plain}${own}${configurationHashName} = '${sha256}'\n`, sha256 };
}

/** Reads the settings of a file in the form that we write; comments and blank lines are passed over, the last value of a name wins. */
export function parseSettings(text: string): Map<string, string> {
  const settings = new Map<string, string>();
  for (const line of text.split("\n")) {
    const match = /^\s*([A-Za-z_][A-Za-z0-9_.$]*)\s*(?:=\s*|\s+)(\S.*?)\s*$/.exec(line);
    if (!match?.[1] || match[2] === undefined) continue;
    settings.set(match[1], unquoteSetting(match[2]) ?? match[2]);
  }
  return settings;
}

/** Byte order of names, whatever the locale. */
export function byCodeUnits(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function pick(settings: Settings, names: readonly string[]): Settings {
  return new Map(names.map((name) => [name, settings.get(name) ?? ""]));
}
