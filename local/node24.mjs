// Runs a TypeScript program of this repository on the Node 24 that the package brings.
// The machine's own Node may be older (20 is enough to run this file), so this stays plain JavaScript
// without dependencies: it installs the locked packages when they are missing or out of date, then hands over.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, "node_modules", ".cnpg-ts-lock");

function lockHash() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

function installPackages() {
  const wanted = lockHash();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  process.stderr.write("Installing npm packages (about a minute on a cold cache) ...\n");
  // Output goes to stderr: commands such as local:info promise clean JSON on stdout.
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (result.error || result.status !== 0) {
    process.stderr.write(
      `npm ci failed (${result.error?.message ?? `exit ${result.status}`}). Check that the npm registry can be reached, then run the command again.\n`,
    );
    process.exit(1);
  }
  writeFileSync(stamp, wanted);
}

function nodeBinary() {
  const path = join(root, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  if (existsSync(path)) return path;
  process.stderr.write(
    `No Node 24 for ${process.platform}/${process.arch} among the packages: Linux on x64 or arm64 is needed.\n`,
  );
  process.exit(1);
}

const [script, ...args] = process.argv.slice(2);
if (!script) {
  process.stderr.write("usage: node local/node24.mjs SCRIPT.ts [ARGUMENT ...]\n");
  process.exit(2);
}
installPackages();
const child = spawn(nodeBinary(), ["--import", "tsx", join(root, script), ...args], {
  cwd: root,
  stdio: "inherit",
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
