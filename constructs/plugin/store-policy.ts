// Which ObjectStores the API server takes: the rules that the webhooks have for the object store of a Cluster, as a policy of the API
// server's own, because the plugin serves no webhook. The definition of the kind stays as others know it.
import { ApiObject } from "cdk8s";
import type { Construct } from "constructs";
import { annotations } from "../../src/api/labels.ts";
import { pluginNames } from "./names.ts";

/** One rule: an expression in CEL over `object`, and what is said when it does not hold. */
export interface StoreRule {
  readonly expression: string;
  readonly message: string;
}

const store = "object.spec.configuration";
const given = (field: string) => `has(${store}.${field})`;
const isOn = (field: string) => `(${given(field)} && ${store}.${field})`;
const anyOf = (...terms: string[]) => terms.map((term) => `(${term})`).join(" || ");
const countOf = (...terms: string[]) => `size([${terms.join(", ")}].filter(it, it))`;

const providers = countOf(given("azureCredentials"), given("s3Credentials"), given("googleCredentials"));
const one = "One and only one of azureCredentials, s3Credentials and googleCredentials are required";

/** Rules that hold only where the section is there; a member of one that is not there cannot be asked for. */
const within = (section: string, expression: string) => anyOf(`!${given(section)}`, expression);

const azure = "azureCredentials";
const [byString, byKey, byToken] = ["connectionString", "storageKey", "storageSasToken"].map((field) =>
  given(`${azure}.${field}`),
) as [string, string, string];
const azureWays = countOf(
  isOn(`${azure}.inheritFromAzureAD`),
  isOn(`${azure}.useDefaultAzureCredentials`),
  byKey,
  byToken,
);
const account = given(`${azure}.storageAccount`);

const s3 = "s3Credentials";
const [id, key] = [given(`${s3}.accessKeyId`), given(`${s3}.secretAccessKey`)];
const role = isOn(`${s3}.inheritFromIAMRole`);

const google = "googleCredentials";
const file = given(`${google}.applicationCredentials`);
const ambient = isOn(`${google}.gkeEnvironment`);

/** The rules; their texts are those of the webhooks. */
export const storeRules: readonly StoreRule[] = [
  { expression: `${providers} > 0`, message: `missing credentials. ${one}` },
  { expression: `${providers} < 2`, message: `too many credentials. ${one}` },
  {
    expression: within(azure, anyOf(`!${byString}`, `${azureWays} == 0 && !${account}`)),
    message: "azureCredentials: when connection string is specified, the other parameters must be empty",
  },
  {
    expression: within(azure, anyOf(byString, `${azureWays} == 1`)),
    message:
      "azureCredentials: when connection string is not specified, one and only one of storage key, storage SAS token, " +
      "Azure AD authentication, or default Azure credentials is required",
  },
  {
    expression: within(azure, anyOf(byString, account, `!${byKey} && !${byToken}`)),
    message: "azureCredentials: storage account must be specified when using storage key or SAS token",
  },
  {
    expression: within(s3, `${id} == ${key}`),
    message: "s3Credentials: when using AWS credentials both accessKeyId and secretAccessKey must be provided",
  },
  {
    expression: within(s3, anyOf(id, key, role)),
    message: "s3Credentials: at least one AWS authentication method should be supplied",
  },
  {
    expression: within(s3, anyOf(`!${role}`, `!${id} && !${key}`)),
    message: "s3Credentials: only one AWS authentication method should be supplied",
  },
  {
    expression: within(google, anyOf(ambient, file)),
    message: "googleCredentials: if gkeEnvironment is false, secret with credentials must be provided",
  },
  {
    expression: within(google, anyOf(`!${ambient}`, `!${file}`)),
    message: "googleCredentials: if gkeEnvironment is true, secret with credentials must not be provided",
  },
];

const notes = "object.metadata.annotations";

/** The policy, and the binding that puts it in force everywhere. */
export function addStorePolicy(scope: Construct): void {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: pluginNames.storePolicy };
  new ApiObject(scope, "StorePolicy", {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata,
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ["barmancloud.cnpg.io"],
            apiVersions: ["*"],
            operations: ["CREATE", "UPDATE"],
            resources: ["objectstores"],
          },
        ],
      },
      matchConditions: [
        {
          name: "validated",
          expression: `!has(${notes}) || !("${annotations.validation}" in ${notes}) || ${notes}["${annotations.validation}"] != "disabled"`,
        },
        // One that is there already can still be labelled, annotated and deleted.
        { name: "changed", expression: "oldObject == null || object.spec != oldObject.spec" },
      ],
      validations: storeRules.map((rule) => ({ ...rule })),
    },
  });
  new ApiObject(scope, "StorePolicyBinding", {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata,
    spec: { policyName: pluginNames.storePolicy, validationActions: ["Deny"] },
  });
}
