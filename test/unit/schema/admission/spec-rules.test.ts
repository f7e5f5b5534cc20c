import { describe, expect, test } from "vitest";
import { refusals, type Spec } from "./a-cluster.ts";

const toleration = (entry: object): Spec => ({ affinity: { tolerations: [entry] } });
const external = (entry: object): Spec => ({
  externalClusters: [{ name: "o", connectionParameters: { host: "o" }, ...entry }],
});
const s3 = { accessKeyId: { name: "s", key: "a" }, secretAccessKey: { name: "s", key: "b" } };
const store = (credentials: object): Spec => ({
  backup: { barmanObjectStore: { destinationPath: "s3://b/", ...credentials } },
});
const key = { name: "s", key: "k" };
const one = "One and only one of azureCredentials, s3Credentials and googleCredentials are required";
const storePath = "spec.backup.barmanObjectStore";

const rows: [rule: string, good: Spec, bad: Spec, refusals: string[]][] = [
  [
    "superuser secret",
    { superuserSecret: { name: "s" } },
    { superuserSecret: { name: "" } },
    ['spec.superusersecret.name: Invalid value: "": Super user secret name can\'t be empty'],
  ],
  [
    "alternative names and a server certificate",
    { certificates: { serverAltDNSNames: ["a.example"] } },
    { certificates: { serverAltDNSNames: ["a.example"], serverTLSSecret: "t", serverCASecret: "c" } },
    [
      'spec.certificates.serveraltdnsnames: Invalid value: ["a.example"]: Server alternative DNS names can\'t be defined when server TLS secret is provided',
    ],
  ],
  [
    "server authority",
    { certificates: { serverTLSSecret: "t", serverCASecret: "c" } },
    { certificates: { serverTLSSecret: "t" } },
    [
      'spec.certificates.servercasecret: Invalid value: "": Server CA secret can\'t be empty when server TLS secret is provided',
    ],
  ],
  [
    "client authority",
    { certificates: { replicationTLSSecret: "t", clientCASecret: "c" } },
    { certificates: { replicationTLSSecret: "t" } },
    [
      'spec.certificates.clientcasecret: Invalid value: "": Client CA secret can\'t be empty when client replication secret is provided',
    ],
  ],
  [
    "latest",
    { imageName: "r.example:5000/pg:17.6" },
    { imageName: "r.example:5000/pg:latest" },
    [
      "spec.imageName: Invalid value: \"r.example:5000/pg:latest\": Can't use 'latest' as image tag as we can't detect upgrades",
    ],
  ],
  [
    "no tag",
    { imageName: "pg:18@sha256:0" },
    { imageName: "r.example:5000/pg" },
    [
      "spec.imageName: Invalid value: \"r.example:5000/pg\": Can't use 'latest' as image tag as we can't detect upgrades",
    ],
  ],
  [
    "digest alone",
    { imageName: "pg:18.4-system-trixie" },
    { imageName: "pg@sha256:0" },
    ["spec.imageName: Invalid value: \"pg@sha256:0\": Can't use just the image sha as we can't detect upgrades"],
  ],
  [
    "tag without a version",
    { imageName: "pg:16" },
    { imageName: "pg:stable" },
    ['spec.imageName: Invalid value: "pg:stable": invalid version tag'],
  ],
  [
    "old version",
    { imageName: "pg:13.1" },
    { imageName: "pg:12.20" },
    ['spec.imageName: Invalid value: "pg:12.20": Unsupported PostgreSQL version. Versions 13 or newer are supported'],
  ],
  [
    "pull policy",
    { imagePullPolicy: "Never" },
    { imagePullPolicy: "Sometimes" },
    [
      "spec.imagePullPolicy: Invalid value: \"Sometimes\": invalid imagePullPolicy, if defined must be one of 'Always', 'Never' or 'IfNotPresent'",
    ],
  ],
  [
    "update strategy",
    { primaryUpdateStrategy: "supervised" },
    { primaryUpdateStrategy: "manual" as never },
    [
      "spec.primaryUpdateStrategy: Invalid value: \"manual\": primaryUpdateStrategy should be empty, 'supervised' or 'unsupervised'",
    ],
  ],
  [
    "supervision of one",
    { instances: 2, primaryUpdateStrategy: "supervised" },
    { instances: 1, primaryUpdateStrategy: "supervised" },
    [
      'spec.primaryUpdateStrategy: Invalid value: "supervised": supervised update strategy is not allowed for clusters with a single instance',
    ],
  ],
  [
    "least synchronous replicas",
    { minSyncReplicas: 1, maxSyncReplicas: 2 },
    { minSyncReplicas: 2, maxSyncReplicas: 1 },
    ["spec.minSyncReplicas: Invalid value: 2: minSyncReplicas cannot be greater than maxSyncReplicas"],
  ],
  [
    "negative synchronous replicas",
    { minSyncReplicas: 0, maxSyncReplicas: 0 },
    { minSyncReplicas: -2, maxSyncReplicas: -1 },
    [
      "spec.minSyncReplicas: Invalid value: -2: minSyncReplicas must be a non negative integer",
      "spec.maxSyncReplicas: Invalid value: -1: maxSyncReplicas must be a non negative integer",
    ],
  ],
  [
    "most synchronous replicas",
    { maxSyncReplicas: 2 },
    { maxSyncReplicas: 3 },
    ["spec.maxSyncReplicas: Invalid value: 3: maxSyncReplicas must be lower than the number of instances"],
  ],
  [
    "lease duration",
    { primaryLease: { leaseDurationSeconds: 15, renewDeadlineSeconds: 10, retryPeriodSeconds: 2 } },
    { primaryLease: { leaseDurationSeconds: 10 } },
    [
      "spec.primaryLease.leaseDurationSeconds: Invalid value: 10: leaseDurationSeconds must be greater than renewDeadlineSeconds",
    ],
  ],
  [
    "lease renewal",
    { primaryLease: { renewDeadlineSeconds: 7, retryPeriodSeconds: 5 } },
    { primaryLease: { renewDeadlineSeconds: 6, retryPeriodSeconds: 5 } },
    [
      "spec.primaryLease.renewDeadlineSeconds: Invalid value: 6: renewDeadlineSeconds must be greater than retryPeriodSeconds multiplied by 1.2",
    ],
  ],
  [
    "service account",
    { serviceAccountName: "mine" },
    { serviceAccountName: "mine", serviceAccountTemplate: { metadata: {} } },
    [
      'spec.serviceAccountName: Invalid value: "mine": serviceAccountName and serviceAccountTemplate are mutually exclusive',
    ],
  ],
  [
    "volume size",
    { storage: { size: "10Gi" } },
    { storage: { size: "10GB" } },
    ['spec.storage.size: Invalid value: "10GB": Size value isn\'t valid'],
  ],
  [
    "positive volume size",
    { storage: { size: "0.5Gi" } },
    { storage: { size: "-1Gi" } },
    ['spec.storage.size: Invalid value: "-1Gi": Size value isn\'t valid'],
  ],
  [
    "some volume size",
    { storage: { pvcTemplate: { resources: { requests: { storage: "1Gi" } } } } },
    { walStorage: {} },
    [
      'spec.walStorage.size: Invalid value: "": Size not configured. Please add it, or a storage request in the pvcTemplate.',
    ],
  ],
  [
    "tablespace size",
    { tablespaces: [{ name: "a", storage: { size: "1Gi" } }] },
    { tablespaces: [{ name: "a", storage: { size: "big" } }] },
    ['spec.tablespaces[0].size: Invalid value: "big": Size value isn\'t valid'],
  ],
  [
    "scratch volume",
    { ephemeralVolumesSizeLimit: { temporaryData: "1Gi" } },
    { ephemeralVolumesSizeLimit: { temporaryData: "1Gi" }, ephemeralVolumeSource: {} },
    [
      'spec.ephemeralVolumeSource: Duplicate value: "Conflicting settings: provide either ephemeralVolumeSource or ephemeralVolumesSizeLimit.TemporaryData, not both."',
    ],
  ],
  ...(
    [
      [["a", "A"], 1, "duplicate tablespace name"],
      [["pg_a"], 0, "tablespace names beginning 'pg_' are reserved for Postgres"],
      [
        ["1a"],
        0,
        "tablespace names must be valid Postgres identifiers: alphanumeric characters, '_', '$', and must start with a letter or an underscore",
      ],
      [["a".repeat(64)], 0, "the maximum length of an identifier is 63 characters"],
      [
        ["a_b", "a$b"],
        1,
        'tablespace name results in duplicate volume name "a-b" after sanitization (special characters are converted to hyphens)',
      ],
    ] as [string[], number, string][]
  ).map(([names, index, message]): [string, Spec, Spec, string[]] => {
    const tablespaces = (list: string[]) => list.map((name) => ({ name, storage: { size: "1Gi" } }));
    return [
      message,
      { tablespaces: tablespaces(["_ok$1", "other"]) },
      { tablespaces: tablespaces(names) },
      [`spec.tablespaces[${index}]: Invalid value: ${JSON.stringify(names[index])}: ${message}`],
    ];
  }),
  [
    "snapshot class of a tablespace",
    {
      tablespaces: [{ name: "a", storage: { size: "1Gi" } }],
      backup: { volumeSnapshot: { tablespaceClassName: { a: "c" } } },
    },
    { backup: { volumeSnapshot: { tablespaceClassName: { a: "c" } } } },
    [
      "spec.backup.volumeSnapshot.tablespaceClassName: Invalid value: \"a\": specified the VolumeSnapshot backup configuration for the tablespace: a, but it can't be found in the '.spec.tablespaces' stanza",
    ],
  ],
  [
    "names of external clusters",
    external({}),
    {
      externalClusters: [
        { name: "o", connectionParameters: { host: "o" } },
        { name: "o", connectionParameters: { host: "p" } },
      ],
    },
    ['spec.externalClusters: Invalid value: ["o","o"]: the list of external clusters contains duplicate values'],
  ],
  [
    "file names of external clusters",
    external({ sslKey: { name: "s", key: "tls.key" } }),
    external({ name: "../o", sslKey: { name: "s", key: "a/b" }, sslRootCert: { name: "..", key: "c" } }),
    [
      "spec.externalClusters[0].name: Invalid value: \"../o\": cannot contain a path separator or a '..' component",
      "spec.externalClusters[0].sslKey.key: Invalid value: \"a/b\": cannot contain a path separator or a '..' component",
      "spec.externalClusters[0].sslRootCert.name: Invalid value: \"..\": cannot contain a path separator or a '..' component",
    ],
  ],
  [
    "anti-affinity type",
    { affinity: { podAntiAffinityType: "required" } },
    { affinity: { podAntiAffinityType: "strict" } },
    [
      "spec.affinity.podAntiAffinityType: Invalid value: \"strict\": pod anti-affinity type must be 'preferred' (default if empty) or 'required'",
    ],
  ],
  [
    "toleration of everything",
    toleration({ operator: "Exists" }),
    toleration({ value: "v" }),
    [
      'spec.affinity.toleration[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  ],
  [
    "toleration seconds",
    toleration({ key: "k", operator: "Exists", effect: "NoExecute", tolerationSeconds: 1 }),
    toleration({ key: "k", operator: "Exists", effect: "NoSchedule", tolerationSeconds: 1 }),
    [
      "spec.affinity.toleration[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    ],
  ],
  [
    "toleration by existence",
    toleration({ key: "k", operator: "Exists" }),
    toleration({ key: "k", operator: "Exists", value: "v" }),
    ["spec.affinity.toleration[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"],
  ],
  [
    "toleration operator and effect",
    toleration({ key: "k", operator: "Equal", value: "v", effect: "NoSchedule" }),
    toleration({ key: "k", operator: "Like", effect: "Never" }),
    [
      'spec.affinity.toleration[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
      'spec.affinity.toleration[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
  ],
  [
    "some credentials",
    store({ s3Credentials: s3 }),
    store({}),
    [`${storePath}: Invalid value: "s3://b/": missing credentials. ${one}`],
  ],
  [
    "one kind of credentials",
    store({ googleCredentials: { gkeEnvironment: true } }),
    store({ s3Credentials: s3, googleCredentials: { gkeEnvironment: true } }),
    [`${storePath}: Invalid value: "s3://b/": too many credentials. ${one}`],
  ],
  [
    "one way into Azure",
    store({ azureCredentials: { storageAccount: key, storageKey: key } }),
    store({ azureCredentials: { storageAccount: key, storageKey: key, inheritFromAzureAD: true } }),
    [
      `${storePath}.azureCredentials: Invalid value: ${JSON.stringify({ storageAccount: key, storageKey: key, inheritFromAzureAD: true })}: when connection string is not specified, one and only one of storage key, storage SAS token, Azure AD authentication, or default Azure credentials is required`,
    ],
  ],
  [
    "Azure connection string alone",
    store({ azureCredentials: { connectionString: key } }),
    store({ azureCredentials: { connectionString: key, storageKey: key } }),
    [
      `${storePath}.azureCredentials: Invalid value: ${JSON.stringify({ connectionString: key, storageKey: key })}: when connection string is specified, the other parameters must be empty`,
    ],
  ],
  [
    "Azure account",
    store({ azureCredentials: { useDefaultAzureCredentials: true } }),
    store({ azureCredentials: { storageSasToken: key } }),
    [
      `${storePath}.azureCredentials: Invalid value: ${JSON.stringify({ storageSasToken: key })}: storage account must be specified when using storage key or SAS token`,
    ],
  ],
  [
    "whole AWS key pair",
    store({ s3Credentials: { inheritFromIAMRole: true } }),
    store({ s3Credentials: { accessKeyId: key } }),
    [
      `${storePath}.awsCredentials: Invalid value: ${JSON.stringify({ accessKeyId: key })}: when using AWS credentials both accessKeyId and secretAccessKey must be provided`,
    ],
  ],
  [
    "some AWS credentials",
    store({ s3Credentials: s3 }),
    store({ s3Credentials: {} }),
    [`${storePath}.awsCredentials: Invalid value: {}: at least one AWS authentication method should be supplied`],
  ],
  [
    "one way into AWS",
    store({ s3Credentials: s3 }),
    store({ s3Credentials: { ...s3, inheritFromIAMRole: true } }),
    [
      `${storePath}.awsCredentials: Invalid value: ${JSON.stringify({ ...s3, inheritFromIAMRole: true })}: only one AWS authentication method should be supplied`,
    ],
  ],
  [
    "Google secret",
    store({ googleCredentials: { applicationCredentials: key } }),
    store({ googleCredentials: {} }),
    [
      `${storePath}.googleCredentials: Invalid value: {}: if gkeEnvironment is false, secret with credentials must be provided`,
    ],
  ],
  [
    "Google environment",
    store({ googleCredentials: { gkeEnvironment: true } }),
    store({ googleCredentials: { gkeEnvironment: true, applicationCredentials: key } }),
    [
      `${storePath}.googleCredentials: Invalid value: ${JSON.stringify({ gkeEnvironment: true, applicationCredentials: key })}: if gkeEnvironment is true, secret with credentials must not be provided`,
    ],
  ],
  [
    "retention",
    { backup: { retentionPolicy: "30d" } },
    { backup: { retentionPolicy: "0d" } },
    ['spec.backup.retentionPolicy: Invalid value: "0d": not a valid retention policy'],
  ],
  [
    "archiver beside the in-tree store",
    { plugins: [{ name: "p", isWALArchiver: true, enabled: false }], ...store({ s3Credentials: s3 }) },
    { plugins: [{ name: "p", isWALArchiver: true }], ...store({ s3Credentials: s3 }) },
    ['spec.plugins: Invalid value: ["p"]: Cannot enable a WAL archiver plugin when barmanObjectStore is configured'],
  ],
  [
    "two archivers",
    { plugins: [{ name: "p", isWALArchiver: true }, { name: "q" }] },
    {
      plugins: [
        { name: "p", isWALArchiver: true },
        { name: "q", isWALArchiver: true },
      ],
    },
    ['spec.plugins: Invalid value: ["p","q"]: Cannot enable more than one WAL archiver plugin'],
  ],
];

describe.each(rows)("%s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals({ spec: good })).toEqual([]));
  test("refuses", () => expect(refusals({ spec: bad })).toEqual(expected));
});
