import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** A copy of what the generator reads and writes, so that the test may break it. */
let copy: string;

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "cnpg-ts-generate-"));
  for (const path of [
    "constructs/crds",
    "constructs/generate",
    "local/csi",
    "imports",
    "proto",
    "src/api",
    "src/rpc/gen",
    "src/schema",
  ]) {
    cpSync(path, join(copy, path), { recursive: true });
  }
  for (const path of ["dist/crds.k8s.yaml", "package.json", "tsconfig.json", "biome.json"]) {
    cpSync(path, join(copy, path));
  }
  symlinkSync(join(process.cwd(), "node_modules"), join(copy, "node_modules"));
});

afterAll(() => {
  rmSync(copy, { recursive: true, force: true });
});

function generate(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", "constructs/generate/main.ts", ...args],
    { cwd: copy, encoding: "utf8" },
  );
  return { code: status, stdout, stderr };
}

describe("npm run generate", () => {
  it("finds the committed files current", () => {
    expect(generate("--check")).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("lists files that drift without touching them, then repairs them", () => {
    const edited = join(copy, "dist/crds.k8s.yaml");
    const current = readFileSync(edited, "utf8");
    writeFileSync(edited, `${current}# edited\n`);
    rmSync(join(copy, "src/api/generated/pooler.ts"));
    writeFileSync(join(copy, "src/schema/generated/gone.ts"), "");

    const check = generate("--check");
    expect(check.code).toBe(1);
    expect(check.stdout.trim().split("\n").sort()).toEqual([
      "dist/crds.k8s.yaml: out of date",
      "src/api/generated/pooler.ts: missing",
      "src/schema/generated/gone.ts: left over",
    ]);
    expect(readFileSync(edited, "utf8")).toContain("# edited");

    expect(generate()).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(edited, "utf8")).toBe(current);
    expect(generate("--check")).toMatchObject({ code: 0, stdout: "" });
  });

  it("carries a changed definition to everything that follows from it", () => {
    const source = join(copy, "constructs/crds/subscription.ts");
    writeFileSync(source, readFileSync(source, "utf8").replace("publicationDBName:", "publicationDatabase:"));
    const check = generate("--check");
    expect(check.code).toBe(1);
    expect(check.stdout.trim().split("\n")).toEqual([
      "dist/crds.k8s.yaml: out of date",
      "imports/postgresql.cnpg.io.ts: out of date",
      "src/api/generated/subscription.ts: out of date",
      "src/schema/generated/subscription.ts: out of date",
    ]);
  });

  it("refuses arguments that it does not know", () => {
    expect(generate("--chek")).toMatchObject({ code: 2, stdout: "" });
  });
});
