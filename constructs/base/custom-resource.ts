import { ApiObject } from "cdk8s";
import { Construct } from "constructs";
import { checkManifest, warnOfManifest } from "./check-manifest.ts";
import { stringifyMaps } from "./string-maps.ts";

/** What every resource of ours takes beside its own props. */
export interface ResourceProps {
  /** Name of the object, used exactly as given. @default - the construct's id */
  readonly name?: string;
  /** Namespace of the object. @default - the chart's namespace, else none is written */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /**
   * Checks at synth what the API server and the webhooks would check.
   * @default true
   */
  readonly validate?: boolean;
}

/** A manifest as it will be written, before the metadata is completed. */
export interface ResourceBody {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: object;
}

/** Base of the constructs that stand for one custom resource each. */
export abstract class CustomResource extends Construct {
  /** The object in the synthesized output; use it for JSON patches and dependencies. */
  readonly apiObject: ApiObject;

  /** Name of the object in the cluster. */
  get name(): string {
    return this.apiObject.name;
  }

  protected constructor(scope: Construct, id: string, props: ResourceProps, body: ResourceBody) {
    super(scope, id);
    this.apiObject = new ApiObject(this, "Resource", {
      apiVersion: body.apiVersion,
      kind: body.kind,
      metadata: {
        name: props.name ?? id,
        ...(props.namespace !== undefined && { namespace: props.namespace }),
        ...(props.labels && { labels: { ...props.labels } }),
        ...(props.annotations && { annotations: { ...props.annotations } }),
      },
      spec: stringifyMaps(body.kind, body.spec),
    });
    if (props.validate !== false) {
      this.node.addValidation({ validate: () => this.#check() });
    }
  }

  #warned = false;

  /** Warnings are noted on the construct and told once; they keep nothing from being written. */
  #check(): string[] {
    const manifest = this.apiObject.toJson();
    const issues = checkManifest(manifest);
    if (issues.length > 0 || this.#warned) return issues;
    this.#warned = true;
    for (const warning of warnOfManifest(manifest)) {
      this.node.addMetadata("cnpg-ts/warning", warning);
      process.emitWarning(warning, { type: "ManifestWarning" });
    }
    return [];
  }
}
