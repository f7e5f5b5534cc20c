import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { evaluateCelRules, isCrdKind, validateAgainstSchema } from "../../src/schema/crd/index.ts";

/** One manifest of the samples. */
export interface Sample {
  /** File and place in it, such as `cluster-example.yaml[0]`. */
  readonly id: string;
  readonly manifest: Manifest;
}

/** What every manifest has. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

/** All manifests of the samples; files that hold something else, such as chart values, are left out. */
export function readSamples(folder: string): readonly Sample[] {
  const root = join(folder, "samples");
  return (readdirSync(root, { recursive: true }) as string[])
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .flatMap((file) =>
      parseAllDocuments(readFileSync(join(root, file), "utf8"))
        .map((document) => document.toJS() as unknown)
        .flatMap((manifest, index) => (isManifest(manifest) ? [{ id: `${file}[${index}]`, manifest }] : [])),
    );
}

/** Why our validators refuse a manifest; null when they accept it or it is not of the twelve kinds. */
export function checkOffline({ apiVersion, kind, ...manifest }: Manifest): string | null {
  if (!apiVersion.includes("cnpg.io/") || !isCrdKind(kind)) return null;
  const issues = [...validateAgainstSchema(kind, manifest), ...evaluateCelRules(kind, manifest)];
  return issues.length === 0 ? null : issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
}

function isManifest(value: unknown): value is Manifest {
  const manifest = value as Partial<Manifest> | null;
  return (
    typeof manifest?.apiVersion === "string" && typeof manifest.kind === "string" && manifest.metadata !== undefined
  );
}
