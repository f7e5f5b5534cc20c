/** What the machine offers, as seen before anything is started. */
export interface MachineFacts {
  platform: string;
  arch: string;
  uid: number | undefined;
  /** Outputs of version commands; undefined for a program that is not there. */
  node: string | undefined;
  npm: string | undefined;
  go: string | undefined;
  gcc: string | undefined;
  /** Whether gcc can link statically. */
  staticLibc: boolean;
  apt: boolean;
  /** Those of the needed commands that are missing. */
  missingCommands: readonly string[];
}

/** Commands that the local cluster needs and the Debian packages that bring them. */
export const commandPackages: Readonly<Record<string, string>> = {
  runc: "runc",
  nft: "nftables",
  ip: "iproute2",
  unshare: "util-linux",
  nsenter: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
  losetup: "mount",
  "mkfs.xfs": "xfsprogs",
  flock: "util-linux",
  pkill: "procps",
  tar: "tar",
  python3: "python3",
  "/usr/lib/cni/ptp": "containernetworking-plugins",
};

const minimumNode = 20;
const minimumGo = [1, 26] as const;

/** One line for each thing that is missing and can't be installed by us, saying how to get it. */
export function missingRequirements(facts: MachineFacts): string[] {
  const lines: string[] = [];
  if (facts.platform !== "linux" || !["x64", "arm64"].includes(facts.arch)) {
    lines.push(`Linux on x64 or arm64 is needed, this is ${facts.platform} on ${facts.arch}: use a Linux machine.`);
  }
  if (facts.uid !== 0) {
    lines.push("root is needed for namespaces and mounts: run the command as root, for example with sudo.");
  }
  const nodeMajor = parseVersion(facts.node)?.[0];
  if (nodeMajor === undefined || nodeMajor < minimumNode) {
    lines.push(`Node ${minimumNode} or newer is needed${found(facts.node)}: https://nodejs.org/en/download`);
  }
  if (facts.npm === undefined) lines.push("npm is needed: it comes with Node, on Debian with `apt-get install npm`.");
  const go = parseVersion(facts.go);
  if (!go || isOlder(go, minimumGo)) {
    lines.push(`Go ${minimumGo.join(".")} or newer is needed${found(facts.go)}: https://go.dev/doc/install`);
  }
  if (facts.gcc === undefined) lines.push("gcc is needed: `apt-get install gcc libc6-dev`.");
  else if (!facts.staticLibc) lines.push("gcc needs the static C library: `apt-get install libc6-dev`.");
  if (!facts.apt && facts.missingCommands.length > 0) {
    const packages = packagesFor(facts.missingCommands).join(", ");
    lines.push(`apt is not here to install what is missing: install these yourself: ${packages}.`);
  }
  return lines;
}

/** Debian packages for a list of missing commands, each once. */
export function packagesFor(commands: readonly string[]): string[] {
  return [...new Set(commands.map((command) => commandPackages[command] ?? command))].sort();
}

/** Numbers of the first version in a text such as `go1.26.8` or `v20.1.0`. */
export function parseVersion(text: string | undefined): number[] | undefined {
  const version = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(text ?? "");
  return version?.slice(1).map((part) => Number(part ?? 0));
}

function isOlder(version: readonly number[], minimum: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version;
  return major < minimum[0] || (major === minimum[0] && minor < minimum[1]);
}

function found(version: string | undefined): string {
  return version === undefined ? "" : ` (found ${version.trim()})`;
}
