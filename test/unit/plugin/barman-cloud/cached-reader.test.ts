import { describe, expect, test } from "vitest";
import { resources } from "../../../../src/kube/resources.ts";
import { CachedReader, cacheMs } from "../../../../src/plugin/barman-cloud/cached-reader.ts";
import { anObjectStore } from "../../../support/barman-cloud-objects.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../../support/fake-kube-api.ts";

const key = { namespace: "shop", name: "same" };

function setUp() {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  api.seed(resources.objectStores, anObjectStore("same"));
  api.seed(resources.secrets, { apiVersion: "v1", kind: "Secret", metadata: key, data: { id: "eA==" } });
  return { clock, api, reader: new CachedReader(api, clock), reads: () => api.requests.length };
}

describe("remembered objects", () => {
  test("are told apart by kind, and grow old", async () => {
    const { clock, reader, reads } = setUp();
    expect((await reader.get(resources.objectStores, key)).kind).toBe("ObjectStore");
    expect((await reader.get(resources.secrets, key)).data).toEqual({ id: "eA==" });
    await reader.get(resources.secrets, key);
    expect(reads()).toBe(2);
    await clock.advance(cacheMs);
    await reader.get(resources.secrets, key);
    await reader.get(resources.objectStores, key);
    expect(reads()).toBe(4);
  });

  test("are asked for once by callers that come together, and anew once forgotten", async () => {
    const { reader, reads } = setUp();
    await Promise.all([reader.get(resources.secrets, key), reader.get(resources.secrets, key)]);
    expect(reads()).toBe(1);
    reader.forget(resources.objectStores, key);
    await reader.get(resources.secrets, key);
    expect(reads()).toBe(1);
    reader.forget(resources.secrets, key);
    await reader.get(resources.secrets, key);
    expect(reads()).toBe(2);
  });

  test("do not include failures", async () => {
    const { api, reader } = setUp();
    api.intercept(() => fault("unavailable"));
    await expect(reader.get(resources.secrets, key)).rejects.toMatchObject({ kind: "unavailable" });
    api.intercept(undefined);
    expect((await reader.get(resources.secrets, key)).data).toEqual({ id: "eA==" });
  });
});
