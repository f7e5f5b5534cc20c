import { tryRun } from "../process/run.ts";
import type { Report } from "../terminal/progress.ts";
import { ensureTools, toolPath } from "../tools/build.ts";

/** The user's own kubectl, which knows the plugins that a cluster's credentials may need, or else ours. */
export async function findKubectl(report: Report, env: Record<string, string>): Promise<string> {
  const { code } = await tryRun("kubectl", ["version", "--client"], { env });
  if (code === 0) return "kubectl";
  await ensureTools(["kubectl"], report);
  return toolPath("kubectl");
}
