import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./command.ts";

const settings = ["-o", "DPkg::Lock::Timeout=600", "-o", "APT::Install-Recommends=false", "-y", "-q"];
const environment = { DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };

let turn: Promise<unknown> = Promise.resolve();

/**
 * Installs the Debian packages that are not installed yet; needs root.
 *
 * Calls of one process wait for each other; another process's apt is waited for by apt itself.
 */
export function ensureAptPackages(names: readonly string[], log: (line: string) => void = () => {}): Promise<void> {
  const result = turn.then(() => install(names, log));
  turn = result.catch(() => {});
  return result;
}

async function install(names: readonly string[], log: (line: string) => void): Promise<void> {
  const missing = await missingPackages(names);
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0)
    throw new Error(`The Debian packages ${missing.join(", ")} are missing: run as root, or install them first.`);
  log(`Installing Debian packages: ${missing.join(" ")}`);
  await updateLists();
  await runCommand("apt-get", ["install", ...settings, ...missing], { env: environment });
}

async function missingPackages(names: readonly string[]): Promise<string[]> {
  // dpkg-query fails when it does not know one of the names, and still prints the others.
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query fills in these placeholders
  const query = ["-W", "-f", "${Package} ${db:Status-Status}\n", ...names];
  const known = await runCommand("sh", ["-c", 'dpkg-query "$@" 2>/dev/null || true', "sh", ...query]);
  const installed = new Set(known.split("\n").flatMap((line) => line.match(/^(\S+) installed$/)?.slice(1) ?? []));
  return names.filter((name) => !installed.has(name));
}

async function updateLists(): Promise<void> {
  // The lock of the lists has no timeout of its own in apt.
  for (let attempt = 1; ; attempt++) {
    try {
      await runCommand("apt-get", ["update", "-q"], { env: environment });
      return;
    } catch (error) {
      if (attempt === 20 || !/Could not get lock|Unable to lock/.test(String(error))) throw error;
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
  }
}

/** Address of the Debian mirror that this machine itself uses; `CNPG_TS_DEBIAN_MIRROR` overrides it. */
export async function debianMirror(): Promise<string> {
  const chosen = process.env["CNPG_TS_DEBIAN_MIRROR"];
  if (chosen) return chosen;
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const codename = /^VERSION_CODENAME="?([\w-]+)/m.exec(release)?.[1];
  for (const text of await sourceLists()) {
    const mirror = findMirror(text, codename);
    if (mirror) return mirror;
  }
  throw new Error("No Debian mirror in /etc/apt: set CNPG_TS_DEBIAN_MIRROR to the address of one.");
}

async function sourceLists(): Promise<string[]> {
  const folder = "/etc/apt/sources.list.d";
  const files = (await readdir(folder).catch(() => [])).filter((name) => /\.(list|sources)$/.test(name)).sort();
  const paths = ["/etc/apt/sources.list", ...files.map((name) => join(folder, name))];
  return Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
}

/** Finds the mirror with the release's own suite and component `main` in a sources file of either format. */
export function findMirror(text: string, codename: string | undefined): string | undefined {
  const lines = text.split("\n").filter((line) => !line.startsWith("#"));
  for (const line of lines) {
    const [, uri, suite, components] = /^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)/.exec(line) ?? [];
    if (uri && suite === codename && components?.split(/\s+/).includes("main")) return uri;
  }
  for (const stanza of lines.join("\n").split(/\n\s*\n/)) {
    const field = (name: string) => (new RegExp(`^${name}:\\s*(.*)`, "im").exec(stanza)?.[1] ?? "").trim().split(/\s+/);
    if (!field("Types").includes("deb") || !field("Components").includes("main")) continue;
    if (codename && field("Suites").includes(codename)) return field("URIs")[0];
  }
  return undefined;
}
