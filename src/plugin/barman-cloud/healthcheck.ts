import { pluginSocketFolder } from "../../api/plugin-service.ts";
import { pluginName } from "./identity.ts";

/** Exit codes that probes of any release of the plugin understand. */
export const healthExit = { serving: 0, callFailed: 1, unknown: 2, notServing: 3, usage: 125 } as const;

/** Asks the plugin of this pod whether it serves; gives the exit code of the probe and what to print. */
export async function runHealthcheck(
  args: readonly string[],
  socketFolder: string = pluginSocketFolder,
): Promise<{ code: number; message: string }> {
  if (args[0] !== "unix") return { code: healthExit.usage, message: "usage: healthcheck unix" };
  const { checkHealth } = await import("../../rpc/check-health.ts");
  const path = `${socketFolder}/${pluginName}`;
  try {
    const answer = await checkHealth({ kind: "socket", name: pluginName, path }, 4_000);
    if (answer === "serving") return { code: healthExit.serving, message: "" };
    const state = answer === "unknown" ? "does not say whether it serves" : "does not serve";
    return { code: healthExit[answer], message: `the plugin behind ${path} ${state}` };
  } catch (error) {
    return { code: healthExit.callFailed, message: error instanceof Error ? error.message : String(error) };
  }
}
