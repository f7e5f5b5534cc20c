import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { object, required, string, use } from "./builders.ts";

/** One column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description?: string;
}

/** The `/scale` subresource. */
export interface ScaleSubresource {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** What a kind needs to say about itself; the rest of its CustomResourceDefinition follows. */
export interface KindDefinition {
  readonly group: string;
  readonly kind: string;
  /** @default "Namespaced" */
  readonly scope?: "Namespaced" | "Cluster";
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly description: string;
  readonly columns?: readonly PrinterColumn[];
  readonly scale?: ScaleSubresource;
  readonly spec?: Schema;
  /** A kind with a status has the status subresource. */
  readonly status?: Schema;
}

/** A CustomResourceDefinition of version v1 as data. */
export interface CrdManifest {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly scope: "Namespaced" | "Cluster";
    readonly versions: readonly [CrdVersion];
  };
}

interface CrdVersion {
  readonly name: "v1";
  readonly served: true;
  readonly storage: true;
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly schema: { readonly openAPIV3Schema: Schema };
  readonly subresources: { readonly status?: Record<never, never>; readonly scale?: ScaleSubresource };
}

/** Age is the first column of every kind that has columns. */
export const ageColumn: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

/** A text column. */
export function column(name: string, jsonPath: string, type: PrinterColumn["type"] = "string"): PrinterColumn {
  return { name, type, jsonPath };
}

/** Builds the CustomResourceDefinition of a kind. */
export function defineKind(definition: KindDefinition): CrdManifest {
  const { group, kind, columns, scale, status, shortNames, categories } = definition;
  const singular = kind.toLowerCase();
  const plural = `${singular}s`;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        ...(shortNames ? { shortNames } : {}),
        ...(categories ? { categories } : {}),
      },
      scope: definition.scope ?? "Namespaced",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          ...(columns ? { additionalPrinterColumns: columns } : {}),
          schema: { openAPIV3Schema: rootSchema(definition) },
          subresources: { ...(scale ? { scale } : {}), ...(status ? { status: {} } : {}) },
        },
      ],
    },
  };
}

function rootSchema({ description, spec, status }: KindDefinition): Schema {
  return object(description, {
    apiVersion: string("Group and version of the schema that the object follows."),
    kind: string("Kind of the object."),
    metadata: required({ type: "object" }),
    ...(spec ? { spec: required(spec) } : {}),
    ...(status ? { status: use(status.description ?? "Observed state, written by the operator.", status) } : {}),
  });
}
