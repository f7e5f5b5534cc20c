// The volume driver of the local cluster, for all of its nodes: runs beside the control plane and serves each kubelet on a
// socket of its own, so that one process is enough and a node that loses its power loses no part of it.
import { mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { runMain } from "../terminal/user-error.ts";
import type { DriverConfig } from "./config.ts";
import { controllerHandlers } from "./controller.ts";
import { identityHandlers, registrationHandlers } from "./identity.ts";
import { nodeHandlers } from "./node.ts";
import { NodeMounts } from "./node-mounts.ts";
import { OneAtATime } from "./one-at-a-time.ts";
import { Pool } from "./pool.ts";
import { serve } from "./serve.ts";

await runMain(async () => {
  const { controllerSocket, nodes } = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as DriverConfig;
  const pool = new Pool(new Map(nodes.map(({ name, volumes }) => [name, volumes])));
  const turns = new OneAtATime();
  for (const node of nodes) {
    const handlers = nodeHandlers(node.name, new NodeMounts(node.recordFile), pool, new OneAtATime());
    await serve(node.socket, [...identityHandlers(), ...handlers]);
    mkdirSync(dirname(node.registrationSocket), { recursive: true });
    // Last: the kubelet asks as soon as it sees it.
    await serve(node.registrationSocket, registrationHandlers(node.socket));
  }
  await serve(controllerSocket, [...identityHandlers(), ...controllerHandlers(pool, turns)]);
});
