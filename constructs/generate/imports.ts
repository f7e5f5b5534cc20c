import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Path and source text of the constructs that `cdk8s import` makes of our definitions, for `imports`. */
export function renderImports(root: string, manifests: string): ReadonlyMap<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-imports-"));
  try {
    writeFileSync(join(folder, "crds.yaml"), manifests);
    const options = ["--language", "typescript", "--output", "out", "--save", "false", "--check-upgrade", "false"];
    // In a folder of its own, so that the tool neither reads nor writes the project's cdk8s.yaml.
    execFileSync(
      process.execPath,
      [join(root, "node_modules", "cdk8s-cli", "bin", "cdk8s"), "import", "crds.yaml", ...options],
      { cwd: folder, stdio: ["ignore", "ignore", "pipe"] },
    );
    const out = join(folder, "out");
    return new Map(readdirSync(out).map((name) => [name, readFileSync(join(out, name), "utf8")]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
