import { parseArgs } from "node:util";
import { UserError } from "./terminal/user-error.ts";

export interface StartOptions {
  help: boolean;
  /** Context of a cluster that the user has; the embedded one when absent. */
  context: string | undefined;
  /** Registry that images are pushed to, with an optional path. */
  registry: string | undefined;
  quickstart: boolean;
  /** Number of nodes of the local cluster; as many as it has, or one, when absent. */
  nodes: number | undefined;
}

export const startHelp = `npm start [-- OPTIONS]

Brings up a local Kubernetes on this machine, our operator in it, and the three-instance cluster "quickstart".

  --context NAME     use the Kubernetes of that kubeconfig context instead of the local one; needs --registry
  --registry HOST/…  push the images there and use them from there
  --nodes N          give the local cluster so many nodes (1 to 9); it can't lose any again
  --no-quickstart    stop when the operator runs
  --help             show this text

Running it again is safe: what runs is left alone. \`npm stop\` ends it, \`npm stop -- --purge\` removes everything.
CNPG_TS_STATE=FOLDER chooses where the local cluster keeps its state.
`;

/** As an image's name begins: small letters after the host. */
const registryPattern = /^[\w.-]+(:\d+)?(\/[a-z0-9._-]+)*\/*$/;

/** Reads the command line of \`npm start\`. */
export function parseStartOptions(args: readonly string[]): StartOptions {
  const {
    help,
    context,
    registry,
    nodes,
    "no-quickstart": noQuickstart,
  } = parse(args, {
    help: { type: "boolean", short: "h" },
    context: { type: "string" },
    registry: { type: "string" },
    "no-quickstart": { type: "boolean" },
    nodes: { type: "string" },
  });
  if (nodes !== undefined && !/^[1-9]$/.test(String(nodes))) {
    throw new UserError(`--nodes takes a number from 1 to 9, not ${nodes}.`);
  }
  if (context !== undefined && registry === undefined && help !== true) {
    throw new UserError("--context needs --registry HOST/PATH: your cluster must get the images from somewhere.");
  }
  if (registry !== undefined && context === undefined && help !== true) {
    throw new UserError("--registry is for your own cluster: name it with --context. The local one needs no registry.");
  }
  if (registry !== undefined && !registryPattern.test(String(registry))) {
    throw new UserError(
      `--registry takes HOST[:PORT][/PATH] as in image names, without a scheme, for example registry.example.com/team, not "${registry}".`,
    );
  }
  return {
    help: help === true,
    context: context as string | undefined,
    registry: (registry as string | undefined)?.replace(/\/+$/, ""),
    quickstart: noQuickstart !== true,
    nodes: nodes === undefined ? undefined : Number(nodes),
  };
}

export interface StopOptions {
  help: boolean;
  purge: boolean;
}

export const stopHelp = `npm stop [-- OPTIONS]

Ends the local Kubernetes. Its data and the built programs stay, so that the next \`npm start\` is quick.

  --purge   remove these too
  --help    show this text
`;

/** Reads the command line of \`npm stop\`. */
export function parseStopOptions(args: readonly string[]): StopOptions {
  const { help, purge } = parse(args, { help: { type: "boolean", short: "h" }, purge: { type: "boolean" } });
  return { help: help === true, purge: purge === true };
}

type Specification = Record<string, { type: "boolean" | "string"; short?: string }>;

function parse(args: readonly string[], options: Specification): Record<string, string | boolean | undefined> {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values as Record<string, string | boolean | undefined>;
  } catch (error) {
    throw new UserError(`${error instanceof Error ? error.message.split(". ")[0] : error}. See --help.`);
  }
}
