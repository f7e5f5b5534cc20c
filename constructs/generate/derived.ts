import { customResourceDefinitions } from "../crds/index.ts";
import type { OpenApiDefinitions } from "./core/document.ts";
import { formatSources } from "./format.ts";
import { renderImports } from "./imports.ts";
import { renderManifests } from "./manifests.ts";
import { renderKindTypes } from "./types/kinds.ts";
import { renderKubernetesTypes } from "./types/kubernetes.ts";
import { renderStoredSchemas } from "./validators/stored-schemas.ts";

/** Every file that follows from the definitions, by path from the project's root. */
export async function renderDerived(
  root: string,
  kubernetes: OpenApiDefinitions,
): Promise<ReadonlyMap<string, string>> {
  const manifests = renderManifests(customResourceDefinitions);
  return new Map([
    ["dist/crds.k8s.yaml", manifests],
    ...below("imports", renderImports(root, manifests)),
    ["src/api/generated/kubernetes.ts", renderKubernetesTypes(kubernetes)],
    ...below("src/api/generated", await renderKindTypes(customResourceDefinitions)),
    ...(await formatSources(root, below("src/schema/generated", renderStoredSchemas(customResourceDefinitions)))),
  ]);
}

function below(folder: string, files: ReadonlyMap<string, string>): [string, string][] {
  return [...files].map(([name, content]) => [`${folder}/${name}`, content]);
}
