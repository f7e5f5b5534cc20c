import { describe, expect, it } from "vitest";
import * as core from "../../../constructs/crds/core/generated/kubernetes.ts";
import { customResourceDefinitions, operatorDefinitions, pluginDefinitions } from "../../../constructs/crds/index.ts";
import type { Schema } from "../../../src/schema/crd/structural-schema.ts";

const coreSchemas = new Set<unknown>(Object.values(core));

describe("customResourceDefinitions", () => {
  it("lists the twelve kinds by name", () => {
    expect(customResourceDefinitions.map(({ metadata }) => metadata.name)).toEqual([
      "backups.postgresql.cnpg.io",
      "clusterimagecatalogs.postgresql.cnpg.io",
      "clusters.postgresql.cnpg.io",
      "databaseroles.postgresql.cnpg.io",
      "databases.postgresql.cnpg.io",
      "failoverquorums.postgresql.cnpg.io",
      "imagecatalogs.postgresql.cnpg.io",
      "objectstores.barmancloud.cnpg.io",
      "poolers.postgresql.cnpg.io",
      "publications.postgresql.cnpg.io",
      "scheduledbackups.postgresql.cnpg.io",
      "subscriptions.postgresql.cnpg.io",
    ]);
    expect(operatorDefinitions).toHaveLength(11);
    expect(pluginDefinitions).toHaveLength(1);
  });

  it.each(customResourceDefinitions.map((crd) => [crd.spec.names.kind, crd] as const))(
    "describes every field of %s that is ours, in one sentence",
    (_kind, crd) => {
      const undescribed = fieldsOf(crd.spec.versions[0].schema.openAPIV3Schema).filter(
        ({ path, schema }) => path !== "metadata" && !/^[A-Z].*\.$/.test(schema.description ?? ""),
      );
      expect(undescribed.map(({ path }) => path)).toEqual([]);
    },
  );

  it.each(customResourceDefinitions.map((crd) => [crd.spec.names.kind, crd] as const))(
    "keeps the descriptions of core types out of %s",
    (_kind, crd) => {
      const parts = schemasOf(crd.spec.versions[0].schema.openAPIV3Schema).filter((schema) => coreSchemas.has(schema));
      expect(parts.filter(({ description }) => description !== undefined)).toEqual([]);
    },
  );

  it.each(customResourceDefinitions.map((crd) => [crd.metadata.name, crd] as const))(
    "keeps %s small enough for kubectl apply, which notes it whole in an annotation of at most 256 KiB",
    (_name, crd) => {
      expect(Buffer.byteLength(JSON.stringify(crd))).toBeLessThan(250_000);
    },
  );

  it("gives a status subresource to exactly the kinds with a status", () => {
    for (const crd of customResourceDefinitions) {
      const version = crd.spec.versions[0];
      const hasStatus = version.schema.openAPIV3Schema.properties?.["status"] !== undefined;
      expect([crd.spec.names.kind, version.subresources.status !== undefined]).toEqual([
        crd.spec.names.kind,
        hasStatus,
      ]);
    }
  });

  it("scales Cluster and Pooler, and only Cluster by a selector", () => {
    const scales = customResourceDefinitions.flatMap(({ spec }) => {
      const { scale } = spec.versions[0].subresources;
      return scale ? [[spec.names.kind, scale.labelSelectorPath]] : [];
    });
    expect(scales).toEqual([
      ["Cluster", ".status.selector"],
      ["Pooler", undefined],
    ]);
  });

  it("keeps every shape within what a structural schema may say", () => {
    for (const crd of customResourceDefinitions) {
      for (const schema of schemasOf(crd.spec.versions[0].schema.openAPIV3Schema)) {
        expect(schema.type !== undefined || schema["x-kubernetes-int-or-string"] === true).toBe(true);
        expect(schema.properties !== undefined && schema.additionalProperties !== undefined).toBe(false);
        for (const name of schema.required ?? []) expect(schema.properties).toHaveProperty([name]);
        for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
          expect(isKeyField(schema.items, key)).toBe(true);
        }
      }
    }
  });
});

/** Keys of a list must be there in every item, or have a default. */
function isKeyField(items: Schema | undefined, key: string): boolean {
  return items?.required?.includes(key) === true || items?.properties?.[key]?.default !== undefined;
}

interface Field {
  readonly path: string;
  readonly schema: Schema;
}

/** Fields that our definitions name; what is inside of core types is Kubernetes' own. */
function fieldsOf(schema: Schema, path = ""): Field[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]): Field[] => {
    const here = path === "" ? name : `${path}.${name}`;
    return [{ path: here, schema: field }, ...(isCore(field) ? [] : fieldsOf(field, here))];
  });
  const nested = [schema.items, schema.additionalProperties].filter((inner) => inner !== undefined);
  return [...own, ...nested.flatMap((inner) => (isCore(inner) ? [] : fieldsOf(inner, `${path}[]`)))];
}

function isCore(schema: Schema): boolean {
  return Object.values(core).some((part) => part === schema || part.properties === schema.properties);
}

function schemasOf(schema: Schema): Schema[] {
  const nested = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items ? [schema.items] : []),
    ...(schema.additionalProperties ? [schema.additionalProperties] : []),
  ];
  return [schema, ...nested.flatMap(schemasOf)];
}
