import { dirname } from "node:path";
import { clusterFolders, stateFolder } from "./cluster/folders.ts";
import { readInfo } from "./cluster/info.ts";
import { createKubectl } from "./cluster/kubectl.ts";
import { asStarter } from "./cluster/starter.ts";
import { startCluster } from "./cluster/up.ts";
import { checkMachine, installPackages } from "./install/check.ts";
import { parseStartOptions, type StartOptions, startHelp } from "./options.ts";
import { findKubectl } from "./quickstart/find-kubectl.ts";
import { buildImages, loadImages, pushImages } from "./quickstart/images.ts";
import { runMainJob } from "./quickstart/main-job.ts";
import { quickstart as example } from "./quickstart/names.ts";
import { reportToStderr as report } from "./terminal/progress.ts";
import { runMain } from "./terminal/user-error.ts";
import { ensureTools, toolPath } from "./tools/build.ts";
import { goTools } from "./tools/catalogue.ts";

await runMain(async () => {
  const options = parseStartOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(startHelp);
  else if (options.context !== undefined) await useOwnCluster(options, options.context);
  else await useLocalCluster(options);
});

async function useLocalCluster(options: StartOptions): Promise<void> {
  const packages = await checkMachine();
  const folders = clusterFolders(stateFolder());
  await asStarter(folders, report, async () => {
    await installPackages(packages, report);
    // The images need the network while the programs need the processor.
    const images = buildImages(report);
    const tools = ensureTools(
      goTools.map((tool) => tool.name),
      report,
    );
    const [archives] = await Promise.all([images, tools]);
    await startCluster(folders, report, options.nodes === undefined ? {} : { nodes: options.nodes });
    const loaded = await loadImages(archives, report);
    const kubectl = createKubectl([`--kubeconfig=${folders.kubeconfig}`]);
    const access = [`export KUBECONFIG=${folders.kubeconfig}`, `export PATH=${dirname(toolPath("kubectl"))}:$PATH`];
    const { s3 } = readInfo(folders);
    const archive = s3 ? { archive: { ...s3, endpoint: s3.endpointInCluster } } : {};
    const end = [
      "npm stop                                               # end it; npm start brings it back with its data",
    ];
    const words = { access, kubectl: "kubectl", end };
    await runMainJob(kubectl, loaded, { quickstart: options.quickstart, ...words, ...archive }, report);
  });
}

async function useOwnCluster({ registry = "", quickstart }: StartOptions, context: string): Promise<void> {
  // Loaded only here: it is slow to load, and nothing else of this program needs it.
  const { asCurrentContext, checkContext, checkOwnCluster } = await import("./own-context.ts");
  checkContext(context);
  await asCurrentContext(context, async (env) => {
    const kubectl = createKubectl([`--context=${context}`], await findKubectl(report, env), env);
    // Before minutes are spent on images.
    await checkOwnCluster(kubectl, context);
    const images = await pushImages(await buildImages(report), registry, report);
    await runMainJob(kubectl, images, { quickstart, ...ownWords(context) }, report);
  });
}

/** How the user talks to the cluster at hand, and ends what was started. */
function ownWords(context: string) {
  const kubectl = `kubectl --context ${context}`;
  return {
    access: [],
    kubectl,
    end: [`${kubectl} -n ${example.namespace} delete cluster ${example.name}   # end it; its data goes too`],
  };
}
