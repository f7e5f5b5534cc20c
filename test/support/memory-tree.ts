import type { TreeFiles, TreeStat } from "../../src/ports/tree-files.ts";

type Node =
  | { kind: "file"; mode: number; bytes: Buffer }
  | { kind: "directory"; mode: number }
  | { kind: "symlink"; mode: number; target: string };

/** A folder tree in memory. Links are not followed: who writes through one writes a path that the test can see. */
export class MemoryTree implements TreeFiles {
  readonly nodes = new Map<string, Node>();

  list: TreeFiles["list"] = async (path) => {
    if (this.nodes.get(path)?.kind !== "directory") return undefined;
    return [...this.nodes]
      .filter(([each]) => each.startsWith(`${path}/`) && !each.slice(path.length + 1).includes("/"))
      .map(([each, { kind }]) => ({ name: each.slice(path.length + 1), kind }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  };

  stat: TreeFiles["stat"] = async (path): Promise<TreeStat | undefined> => {
    const node = this.nodes.get(path);
    if (!node) return undefined;
    const size = node.kind === "file" ? node.bytes.length : 0;
    return { kind: node.kind, mode: node.mode, uid: 1, gid: 1, size, mtimeNs: 0n, links: 1, identity: path };
  };

  resolve: TreeFiles["resolve"] = async (path) => path;

  readLink: TreeFiles["readLink"] = async (path) => {
    const node = this.nodes.get(path);
    if (node?.kind !== "symlink") throw new Error(`${path} is no link`);
    return node.target;
  };

  open: TreeFiles["open"] = async (path) => {
    const node = this.nodes.get(path);
    const stat = await this.stat(path);
    if (node?.kind !== "file" || !stat) return undefined;
    return {
      stat,
      read: async (buffer, position) => node.bytes.copy(buffer, 0, position, position + buffer.length),
      close: async () => undefined,
    };
  };

  makeDirectory: TreeFiles["makeDirectory"] = async (path, mode) => {
    const node = this.nodes.get(path);
    if (node && node.kind !== "directory") throw new Error(`${path} is no folder`);
    this.nodes.set(path, { kind: "directory", mode });
  };

  create: TreeFiles["create"] = async (path, mode) => {
    if (this.nodes.has(path)) throw new Error(`${path} exists`);
    const parts: Uint8Array[] = [];
    this.nodes.set(path, { kind: "file", mode, bytes: Buffer.alloc(0) });
    return {
      write: async (chunk) => void parts.push(Uint8Array.from(chunk)),
      close: async () => void this.nodes.set(path, { kind: "file", mode, bytes: Buffer.concat(parts) }),
    };
  };

  symlink: TreeFiles["symlink"] = async (target, path) => {
    this.nodes.set(path, { kind: "symlink", mode: 0o777, target });
  };

  link: TreeFiles["link"] = async (existing, path) => {
    const node = this.nodes.get(existing);
    if (!node) throw new Error(`${existing} does not exist`);
    this.nodes.set(path, node);
  };

  remove: TreeFiles["remove"] = async (path) => {
    for (const each of [...this.nodes.keys()])
      if (each === path || each.startsWith(`${path}/`)) this.nodes.delete(each);
  };

  sync: TreeFiles["sync"] = async () => undefined;
}
