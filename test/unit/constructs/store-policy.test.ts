import { Environment } from "@marcbachmann/cel-js";
import { describe, expect, test } from "vitest";
import { storeRules } from "../../../constructs/plugin/store-policy.ts";
import type { ObjectStore } from "../../../src/api/generated/objectstore.ts";
import { validateObjectStore } from "../../../src/schema/admission/object-store.ts";

type Configuration = Record<string, unknown>;

const secret = { name: "keys", key: "k" };

/** Every object in which each of the fields is either absent or one of its values. */
function combinations(fields: Readonly<Record<string, readonly unknown[]>>): Configuration[] {
  return Object.entries(fields).reduce<Configuration[]>(
    (made, [field, values]) => made.flatMap((it) => [it, ...values.map((value) => ({ ...it, [field]: value }))]),
    [{}],
  );
}

const switches = [true, false];
const sections: Readonly<Record<string, readonly Configuration[]>> = {
  s3Credentials: combinations({ accessKeyId: [secret], secretAccessKey: [secret], inheritFromIAMRole: switches }),
  googleCredentials: combinations({ applicationCredentials: [secret], gkeEnvironment: switches }),
  azureCredentials: combinations({
    connectionString: [secret],
    storageAccount: [secret],
    storageKey: [secret],
    storageSasToken: [secret],
    inheritFromAzureAD: switches,
    useDefaultAzureCredentials: switches,
  }),
};
const several = combinations({
  s3Credentials: [{ inheritFromIAMRole: true }],
  googleCredentials: [{ gkeEnvironment: true }],
  azureCredentials: [{ inheritFromAzureAD: true }],
});

const environment = new Environment().registerVariable("object", "dyn");
const programs = storeRules.map(({ expression, message }) => ({ holds: environment.parse(expression), message }));

function byPolicy(configuration: Configuration): string[] {
  const object = { spec: { configuration } };
  return programs.filter(({ holds }) => holds({ object }) !== true).map(({ message }) => message);
}

/** What the webhooks' rule says of the same store, with the section in the way of the policy. */
function byWebhook(configuration: Configuration): string[] {
  const issues = validateObjectStore({ spec: { configuration } } as unknown as ObjectStore);
  return issues.map(({ path, message }) => {
    const section = path.split(".")[2]?.replace("awsCredentials", "s3Credentials");
    return section ? `${section}: ${message}` : message;
  });
}

describe("the policy for ObjectStores says what the webhooks say of the store of a Cluster", () => {
  test.each(Object.keys(sections))("about %s", (section) => {
    const all = sections[section] ?? [];
    for (const credentials of all) {
      const configuration = { destinationPath: "x", [section]: credentials };
      expect(byPolicy(configuration).sort(), JSON.stringify(credentials)).toEqual(byWebhook(configuration).sort());
    }
    expect(all.some((credentials) => byPolicy({ [section]: credentials }).length === 0)).toBe(true);
  });

  test("about none, one and several of them", () => {
    for (const credentials of several) {
      const configuration = { destinationPath: "x", ...credentials };
      expect(byPolicy(configuration), JSON.stringify(credentials)).toEqual(byWebhook(configuration));
    }
  });
});
