import { chmod, copyFile, cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pluginProgram } from "./bundle.ts";
import { repository } from "./cache.ts";
import { buildRuntime } from "./runtime.ts";

const bundleName = "barman-cloud.cjs";

/** Assembles node, its libraries and the plugin's program; gives the folder. Unchanged inputs leave it as it is. */
export function buildPluginRuntime(): Promise<string> {
  const output = join(repository, "build", "image", "barman-cloud-runtime");
  return buildRuntime({ programs: { [bundleName]: pluginProgram }, output });
}

/**
 * Lays out the root file system of the plugin's image. Here node is the program that the kernel starts, so its loader and
 * libraries lie where they are looked for on any distribution.
 */
export async function layOutPluginRoot(runtime: string, certificates: string, root: string): Promise<void> {
  await rm(root, { recursive: true, force: true });
  await mkdir(join(root, "runtime"), { recursive: true });
  await mkdir(join(root, "etc", "ssl", "certs"), { recursive: true });
  await copyFile(join(runtime, "node"), join(root, "runtime", "node"));
  await cp(join(runtime, "lib"), join(root, "lib"), { recursive: true });
  await symlink("lib", join(root, "lib64"));
  await copyFile(certificates, join(root, "etc", "ssl", "certs", "ca-certificates.crt"));
  // As everywhere else: the pod's own hosts file counts before the name server.
  await writeFile(join(root, "etc", "nsswitch.conf"), "hosts: files dns\n");
  const program = await readFile(join(runtime, bundleName));
  // The kernel passes all that follows the program's name as one argument; the other options are in the environment.
  const manager = Buffer.concat([Buffer.from("#!/runtime/node --no-maglev\n"), program]);
  await writeFile(join(root, "manager"), manager);
  await chmod(join(root, "manager"), 0o755);
}
