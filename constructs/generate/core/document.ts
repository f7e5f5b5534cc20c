import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Release of Kubernetes whose API description the core types come from. */
export const kubernetesVersion = "1.36.3";

/** One definition of the published API description, as far as the rules read it. */
export interface OpenApiSchema {
  readonly $ref?: string;
  readonly allOf?: readonly { readonly $ref: string }[];
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly items?: OpenApiSchema;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly additionalProperties?: OpenApiSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
  readonly "x-kubernetes-group-version-kind"?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

/** Definitions by their full name, such as `io.k8s.api.core.v1.Pod`. */
export type OpenApiDefinitions = Readonly<Record<string, OpenApiSchema>>;

/** The API groups that the operator's objects belong to. */
const groups = [
  "api__v1",
  "apis__admissionregistration.k8s.io__v1",
  "apis__apps__v1",
  "apis__batch__v1",
  "apis__coordination.k8s.io__v1",
  "apis__discovery.k8s.io__v1",
  "apis__policy__v1",
  "apis__rbac.authorization.k8s.io__v1",
] as const;

/** Reads the API description out of the Go module of Kubernetes; only a cold module cache needs the network. */
export function readOpenApiDefinitions(): OpenApiDefinitions {
  const folder = join(moduleFolder(), "api", "openapi-spec", "v3");
  const documents = groups.map((group) => {
    const document = JSON.parse(readFileSync(join(folder, `${group}_openapi.json`), "utf8")) as {
      components: { schemas: OpenApiDefinitions };
    };
    return document.components.schemas;
  });
  return Object.assign({}, ...documents) as OpenApiDefinitions;
}

function moduleFolder(): string {
  const cached = join(go("env", "GOMODCACHE").trim(), `k8s.io/kubernetes@v${kubernetesVersion}`);
  if (existsSync(join(cached, "api"))) return cached;
  const answer = JSON.parse(go("mod", "download", "-json", `k8s.io/kubernetes@v${kubernetesVersion}`)) as {
    Dir?: string;
    Error?: string;
  };
  if (!answer.Dir) {
    throw new Error(
      `The API description of Kubernetes ${kubernetesVersion} could not be downloaded (${answer.Error ?? "no folder named"}); check that Go can reach its module proxy.`,
    );
  }
  return answer.Dir;
}

function go(...args: string[]): string {
  try {
    // Outside of any module, so that no go.mod of the working folder has a say.
    return execFileSync("go", args, { encoding: "utf8", cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
  } catch (error) {
    const cause = error as NodeJS.ErrnoException & { stdout?: string };
    if (cause.code === "ENOENT")
      throw new Error(
        "Generation reads the API description of Kubernetes from its Go module: install Go 1.26 or later.",
      );
    // "go mod download -json" explains itself on stdout and still ends with 1.
    if (cause.stdout) return cause.stdout;
    throw new Error(`"go ${args.join(" ")}" failed.`, { cause: error });
  }
}
