import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { ensureAptPackages } from "../../images/apt.ts";
import { tryRun } from "../process/run.ts";
import { type Report, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { commandPackages, type MachineFacts, missingRequirements, packagesFor } from "./requirements.ts";

/** Where administrators' programs are; a user's PATH may leave these folders out, also under sudo. */
const administratorFolders = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/** Checks what only the user can provide; returns the Debian packages that are missing. */
export async function checkMachine(): Promise<string[]> {
  process.env["PATH"] = [process.env["PATH"] ?? "", ...administratorFolders].join(":");
  const facts = await readFacts();
  const missing = missingRequirements(facts);
  if (missing.length > 0) throw new UserError(missing.map((line) => `✗ ${line}`).join("\n"));
  return packagesFor(facts.missingCommands);
}

/** Installs Debian packages. */
export async function installPackages(packages: readonly string[], report: Report): Promise<void> {
  if (packages.length === 0) return;
  await step(report, `Installing Debian packages ${packages.join(", ")}`, "about 20 s", () =>
    ensureAptPackages(packages),
  );
}

async function readFacts(): Promise<MachineFacts> {
  const [node, npm, go, gcc, libc, venv] = await Promise.all([
    output("node", ["--version"]),
    output("npm", ["--version"]),
    // The version on this machine, not one that it could download.
    output("go", ["env", "GOVERSION"], { GOTOOLCHAIN: "local" }),
    output("gcc", ["-dumpversion"]),
    output("gcc", ["-print-file-name=libc.a"]),
    output("python3", ["-c", "import ensurepip, venv"]),
  ]);
  return {
    platform: process.platform,
    arch: process.arch,
    uid: process.getuid?.(),
    node,
    npm,
    go,
    gcc,
    // gcc answers with the bare name when it does not find the file.
    staticLibc: libc !== undefined && isAbsolute(libc.trim()),
    apt: findCommand("apt-get"),
    missingCommands: [
      ...Object.keys(commandPackages).filter((command) => !findCommand(command)),
      // Debian has the modules that make an environment in a package of their own, without a command.
      ...(venv === undefined ? ["python3-venv"] : []),
    ],
  };
}

async function output(command: string, args: string[], env: Record<string, string> = {}): Promise<string | undefined> {
  const { code, stdout } = await tryRun(command, args, { env });
  return code === 0 ? stdout : undefined;
}

function findCommand(command: string): boolean {
  if (isAbsolute(command)) return existsSync(command);
  return (process.env["PATH"] ?? "").split(":").some((folder) => folder !== "" && existsSync(join(folder, command)));
}
