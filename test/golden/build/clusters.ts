import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { type BuildContext, defaultBuildContext } from "../../../src/build/context.ts";

/** Clusters whose children are compared with committed files, each with the operator's settings. */
export interface GoldenCase {
  name: string;
  cluster: Cluster;
  context: BuildContext;
  /** Whether the operator's namespace has the pull secret. */
  pullSecret: boolean;
}

const context: BuildContext = {
  ...defaultBuildContext,
  operatorImageName: "registry.example/operator:1.30.0",
  operatorNamespace: "cnpg-system",
  monitoringQueriesConfigMap: "cnpg-default-monitoring",
};

const minimal: Cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "one", namespace: "shop", uid: "00000000-0000-4000-8000-000000000001" },
  spec: { instances: 1, imageName: "registry.example/postgresql:17.6", storage: { size: "1Gi" } },
};

const three: Cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "three", namespace: "shop", uid: "00000000-0000-4000-8000-000000000003" },
  spec: {
    instances: 3,
    imageName: "registry.example/postgresql:17.6",
    enableSuperuserAccess: true,
    storage: { size: "10Gi", storageClass: "fast" },
    walStorage: { size: "2Gi" },
    postgresql: { synchronous: { method: "any", number: 1, failoverQuorum: true } },
  },
};

const everything: Cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: {
    name: "all",
    namespace: "shop",
    uid: "00000000-0000-4000-8000-0000000000aa",
    labels: { team: "payments", secretive: "yes" },
    annotations: {
      "audit.example/level": "high",
      "container.apparmor.security.beta.kubernetes.io/postgres": "runtime/default",
      "container.apparmor.security.beta.kubernetes.io/unknown": "runtime/default",
      "kubectl.kubernetes.io/restartedAt": "2026-11-30T00:00:00Z",
      "alpha.cnpg.io/enableInstancePprof": "true",
      "cnpg.io/podPatch": '[{"op":"add","path":"/metadata/labels/patched","value":"true"}]',
    },
  },
  spec: {
    instances: 3,
    imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "ClusterImageCatalog", name: "postgresql", major: 18 },
    imagePullPolicy: "Always",
    imagePullSecrets: [{ name: "registry" }],
    logLevel: "debug",
    enableSuperuserAccess: true,
    startDelay: 95,
    stopDelay: 60,
    livenessProbeTimeout: 31,
    postgresUID: 1026,
    postgresGID: 1027,
    schedulerName: "other-scheduler",
    priorityClassName: "high",
    seccompProfile: { type: "Localhost", localhostProfile: "postgres.json" },
    podSecurityContext: { fsGroup: 2000, supplementalGroups: [3000] },
    securityContext: { readOnlyRootFilesystem: false },
    inheritedMetadata: { labels: { tier: "data" }, annotations: { "contact.example/mail": "dba" } },
    bootstrap: {
      initdb: {
        database: "orders",
        owner: "clerk",
        dataChecksums: true,
        encoding: "UTF8",
        localeCollate: "C",
        localeCType: "C",
        walSegmentSize: 32,
        postInitSQL: ["SELECT 1", "SELECT 'two'"],
        postInitApplicationSQLRefs: {
          secretRefs: [{ name: "seed", key: "private.sql" }],
          configMapRefs: [{ name: "seed", key: "public.sql" }],
        },
      },
    },
    storage: {
      size: "10Gi",
      pvcTemplate: {
        accessModes: ["ReadWriteMany"],
        storageClassName: "slow",
        volumeMode: "Filesystem",
        resources: { requests: { storage: "1Gi" } },
      },
    },
    walStorage: { storageClass: "fast", pvcTemplate: { resources: { requests: { storage: "3Gi" } } } },
    tablespaces: [
      { name: "_Hot$Data", storage: { size: "4Gi" } },
      { name: "archive", owner: { name: "clerk" }, storage: { size: "5Gi" } },
    ],
    ephemeralVolumesSizeLimit: { shm: "64Mi", temporaryData: "1Gi" },
    projectedVolumeTemplate: { sources: [{ secret: { name: "tokens", items: [{ key: "a", path: "a" }] } }] },
    env: [{ name: "TZ", value: "UTC" }],
    envFrom: [{ configMapRef: { name: "extra" } }],
    resources: { requests: { cpu: "500m", memory: "1Gi" }, limits: { memory: "1Gi" } },
    probes: {
      startup: { periodSeconds: 7, timeoutSeconds: 3 },
      readiness: { failureThreshold: 4, initialDelaySeconds: 2, type: "streaming", maximumLag: "16Mi" },
      liveness: { terminationGracePeriodSeconds: 20 },
    },
    affinity: {
      podAntiAffinityType: "required",
      topologyKey: "topology.kubernetes.io/zone",
      nodeSelector: { disk: "ssd" },
      tolerations: [{ key: "db", operator: "Exists", effect: "NoSchedule" }],
      additionalPodAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 10, podAffinityTerm: { topologyKey: "kubernetes.io/hostname" } },
        ],
      },
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "Exists" }] }],
        },
      },
    },
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway" },
    ],
    managed: {
      roles: [
        { name: "reader", passwordSecret: { name: "reader-password" } },
        { name: "ghost", disablePassword: true, passwordSecret: { name: "ignored" } },
      ],
      services: {
        disabledDefaultServices: ["r"],
        additional: [
          {
            selectorType: "rw",
            updateStrategy: "replace",
            serviceTemplate: {
              metadata: { name: "orders-public", labels: { public: "true" }, annotations: { "lb.example/id": "7" } },
              spec: { type: "LoadBalancer", ports: [{ name: "metrics", port: 9187 }] },
            },
          },
        ],
      },
    },
    monitoring: {
      enablePodMonitor: true,
      tls: { enabled: true },
      customQueriesSecret: [{ name: "queries", key: "queries" }],
      podMonitorRelabelings: [{ action: "drop", regex: "x" }],
    },
    certificates: { serverAltDNSNames: ["db.example"] },
    externalClusters: [
      {
        name: "origin",
        connectionParameters: { host: "origin" },
        password: { name: "origin-password", key: "password" },
        sslCert: { name: "origin-tls", key: "tls.crt" },
        sslKey: { name: "origin-tls", key: "tls.key" },
        sslRootCert: { name: "origin-ca", key: "ca.crt" },
      },
    ],
    backup: {
      barmanObjectStore: {
        destinationPath: "s3://backups/",
        endpointCA: { name: "store-ca", key: "ca.crt" },
        s3Credentials: {
          accessKeyId: { name: "store-keys", key: "id" },
          secretAccessKey: { name: "store-keys", key: "secret" },
        },
      },
    },
    postgresql: {
      ldap: { server: "ldap.example", bindSearchAuth: { baseDN: "dc=x", bindPassword: { name: "ldap", key: "pw" } } },
    },
    serviceAccountTemplate: { metadata: { annotations: { "iam.example/role": "db" } } },
  },
  status: {
    image: "registry.example/postgresql:18.4",
    pgDataImageInfo: {
      image: "registry.example/postgresql:18.4",
      majorVersion: 18,
      extensions: [
        { name: "pg_vector", image: { reference: "registry.example/vector:1", pullPolicy: "IfNotPresent" } },
      ],
    },
  },
};

export const goldenCases: readonly GoldenCase[] = [
  { name: "minimal", cluster: minimal, context, pullSecret: false },
  { name: "three-instances", cluster: three, context, pullSecret: true },
  {
    name: "everything",
    cluster: everything,
    pullSecret: true,
    context: {
      ...context,
      createAnyService: true,
      clusterDomain: "k8s.example",
      inheritedLabels: ["team"],
      inheritedAnnotations: ["audit.example/*"],
      standbyTcpUserTimeout: "0",
      logFieldLevel: "severity",
      logFieldTimestamp: "time",
    },
  },
];
