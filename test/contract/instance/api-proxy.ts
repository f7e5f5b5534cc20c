import { chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab } from "./lab.ts";
import { SwitchProxy } from "./switch-proxy.ts";

/** A way to the API server of a lab that can be cut. */
export interface ApiProxy {
  /** Path of a kubeconfig that leads through it, for the environment of an instance. */
  readonly kubeconfig: string;
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

/** Lays a way to the API server; its name tells it from others of the lab. */
export async function proxyApiServer(lab: Lab, name: string): Promise<ApiProxy> {
  const text = readFileSync(join(lab.root, "kubeconfig"), "utf8");
  const apiPort = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  const proxy = await SwitchProxy.start();
  const kubeconfig = join(lab.root, `${name}.kubeconfig`);
  writeFileSync(kubeconfig, text.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${proxy.port}`), { mode: 0o600 });
  chownSync(kubeconfig, lab.user.uid, lab.user.gid);
  const restore = () => {
    proxy.target = apiPort;
  };
  restore();
  return { kubeconfig, restore, cut: () => proxy.cut(), close: () => proxy.close() };
}
