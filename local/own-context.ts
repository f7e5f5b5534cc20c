import { KubeConfig } from "@kubernetes/client-node";
import { UserError } from "./terminal/user-error.ts";

/** Refuses a context that the user's kubeconfig does not have, and names those that it has. */
export function checkContext(name: string, kubeconfig: string | undefined = undefined): void {
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromString(kubeconfig);
  // Without any kubeconfig the client makes up this one.
  const known = config
    .getContexts()
    .map((context) => context.name)
    .filter((context) => context !== "loaded-context");
  if (known.includes(name)) return;
  const choice = known.length > 0 ? `It has: ${known.join(", ")}.` : "It has none.";
  throw new UserError(`Your kubeconfig has no context ${name}. ${choice}`);
}
