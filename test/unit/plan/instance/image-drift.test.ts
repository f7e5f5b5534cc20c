import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { hasImageDrift, runningImages } from "../../../../src/plan/instance/image-drift.ts";

type Info = NonNullable<NonNullable<Cluster["status"]>["pgDataImageInfo"]>;

function images(info: Info | undefined): string[] | undefined {
  return runningImages({ metadata: {}, spec: {}, status: info ? { pgDataImageInfo: info } : {} } as Cluster);
}

const extension = (name: string, reference: string) => ({ name, image: { reference } });

describe("hasImageDrift", () => {
  const base: Info = {
    image: "pg:18.1",
    majorVersion: 18,
    extensions: [extension("postgis", "postgis:3"), extension("vector", "vector:1")],
  };
  test.each<[string, Info | undefined, Info | undefined, boolean]>([
    ["nothing was ever said", undefined, undefined, false],
    ["the first word about it", undefined, base, false],
    ["the word is gone", base, undefined, false],
    ["the same again", base, structuredClone(base), false],
    [
      "the same extensions in another order",
      base,
      { ...base, extensions: [...(base.extensions ?? [])].reverse() },
      false,
    ],
    ["another image of PostgreSQL", base, { ...base, image: "pg:18.2" }, true],
    ["one extension less", base, { ...base, extensions: [extension("vector", "vector:1")] }, true],
    ["no extension any more", base, { image: base.image, majorVersion: 18 }, true],
    [
      "another image of one extension",
      base,
      { ...base, extensions: [extension("postgis", "postgis:4"), extension("vector", "vector:1")] },
      true,
    ],
    [
      "the images of two extensions exchanged",
      base,
      { ...base, extensions: [extension("postgis", "vector:1"), extension("vector", "postgis:3")] },
      true,
    ],
    ["only a folder of an extension, which the files show", base, { ...base, extensions: withFolder(base) }, false],
  ])("%s", (_name, before, now, expected) => {
    expect(hasImageDrift(images(before), images(now))).toBe(expected);
  });
});

function withFolder(info: Info): NonNullable<Info["extensions"]> {
  return (info.extensions ?? []).map((it) => ({ ...it, dynamic_library_path: ["lib64"] }));
}
