import { nodeAddresses } from "../../local/cluster/addresses.ts";
import { onNode } from "./on-node.ts";

const table = "inet cnpg_ts_chaos";

/** Packets by where they come from and where they go; what is left out is any. */
export interface Packets {
  readonly from?: readonly string[];
  readonly to?: readonly string[];
  /** TCP port that they go to. */
  readonly port?: number;
}

/** Drops packets that pass through a node or leave it; all others go on. Resolves with what ends that. */
export async function dropPackets(node: number, ...drops: readonly Packets[]): Promise<() => Promise<string>> {
  const { name } = nodeAddresses(node);
  await onNode(name, ["nft", formatFilter(drops)]);
  return () => onNode(name, ["nft", `delete table ${table}`]);
}

/** The filter as nft reads it: made as a whole or not at all. */
export function formatFilter(drops: readonly Packets[]): string {
  const chains = ["forward", "output"];
  return [
    `add table ${table}`,
    ...chains.map((chain) => `add chain ${table} ${chain} { type filter hook ${chain} priority 0; }`),
    ...chains.flatMap((chain) => drops.map((packets) => `add rule ${table} ${chain} ${formatMatch(packets)} drop`)),
  ].join("; ");
}

function formatMatch({ from, to, port }: Packets): string {
  const parts = [formatAddresses("saddr", from), formatAddresses("daddr", to), port && `tcp dport ${port}`];
  const match = parts.filter(Boolean).join(" ");
  if (match === "") throw new Error("a rule that matches every packet would cut the whole node off");
  return match;
}

function formatAddresses(side: "saddr" | "daddr", addresses: readonly string[] | undefined): string | undefined {
  if (!addresses) return undefined;
  // An empty set would be a syntax error and a missing one would match everything.
  if (addresses.length === 0) throw new Error(`no address to match as ${side}`);
  return `ip ${side} { ${addresses.join(", ")} }`;
}
