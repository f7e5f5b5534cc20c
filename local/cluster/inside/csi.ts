import { connect } from "node:net";
import { join } from "node:path";
import { driverConfig } from "../../csi/config.ts";
import { scriptArguments } from "../../process/script.ts";
import { toolPath } from "../../tools/build.ts";
import { componentKubeconfig } from "../certificates.ts";
import { csiControllerArguments } from "../config/csi.ts";
import { type ClusterFolders, projectRoot } from "../folders.ts";
import type { Daemons } from "./daemon.ts";
import { writeIfChanged } from "./write-if-changed.ts";

/** Starts our volume driver for those nodes, and the programs that provision and resize through it. */
export async function startCsi(folders: ClusterFolders, daemons: Daemons, nodes: readonly string[]): Promise<void> {
  const config = driverConfig(folders, nodes);
  const file = join(folders.config, "csi.json");
  const text = JSON.stringify(config, null, 2);
  writeIfChanged(file, text);
  await daemons.ensure({
    name: "csi-driver",
    command: process.execPath,
    args: scriptArguments(join(projectRoot, "local", "csi", "main.ts"), [file]),
    configuration: [text],
    ready: () => accepts(config.controllerSocket),
  });
  const kubeconfig = componentKubeconfig(folders, "local-path-provisioner");
  const { provisioner, resizer } = csiControllerArguments(kubeconfig, config.controllerSocket);
  await Promise.all([
    daemons.ensure({ name: "csi-provisioner", command: toolPath("csi-provisioner"), args: provisioner }),
    daemons.ensure({ name: "csi-resizer", command: toolPath("csi-resizer"), args: resizer }),
  ]);
}

function accepts(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
    connection.once("error", () => resolve(false));
  });
}
