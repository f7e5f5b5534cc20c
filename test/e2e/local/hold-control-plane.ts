// Starts a control plane, says where, and waits to be killed.
import { dirname } from "node:path";
import { startControlPlane } from "../../../local/control-plane/control-plane.ts";

const { kubeconfig } = await startControlPlane();
process.stdout.write(`folder=${dirname(kubeconfig)}\n`);
setInterval(() => {}, 60_000);
