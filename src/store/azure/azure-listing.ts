import type { ObjectInfo, ObjectPage } from "../../ports/object-store.ts";

/** A page of a listing, and what asks for the next one; empty at the end. */
export interface AzurePage extends ObjectPage {
  marker: string;
}

/** Reads the XML of a listing; `undefined` when it is none. */
export function parseListing(xml: string): AzurePage | undefined {
  if (!xml.includes("<EnumerationResults")) return undefined;
  const objects: ObjectInfo[] = [];
  const prefixes: string[] = [];
  for (const [, kind, inner = ""] of xml.matchAll(/<(Blob|BlobPrefix)>([\s\S]*?)<\/\1>/g)) {
    const name = readName(inner);
    if (kind === "BlobPrefix") {
      prefixes.push(name);
      continue;
    }
    // Accounts with a hierarchical namespace list folders among the blobs, without any bytes.
    if (textOf(inner, "ResourceType") === "directory") continue;
    const modified = Date.parse(textOf(inner, "Last-Modified") ?? "");
    objects.push({
      key: name,
      size: Number(textOf(inner, "Content-Length") ?? 0),
      modifiedMs: Number.isNaN(modified) ? undefined : modified,
    });
  }
  return { objects, prefixes, marker: textOf(xml, "NextMarker") ?? "" };
}

/** Text of the first element of that name. */
export function textOf(xml: string, element: string): string | undefined {
  const match = new RegExp(`<${element}(?: [^>]*)?>([^<]*)</${element}>`).exec(xml);
  return match ? decode(match[1] ?? "") : undefined;
}

/** Names that XML cannot hold come percent-encoded, and say so. */
function readName(xml: string): string {
  const name = textOf(xml, "Name") ?? "";
  return /<Name Encoded="true">/.test(xml) ? decodeURIComponent(name) : name;
}

const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return named[name ?? ""] ?? whole;
  });
}
