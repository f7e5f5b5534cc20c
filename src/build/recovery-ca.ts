import { paths } from "../api/constants.ts";
import type { EnvVar, Volume, VolumeMount } from "../api/generated/kubernetes.ts";

/** Certificate authority of the object store that a recovery reads from. */
export interface EndpointCa {
  secretName: string;
  key: string;
  /** Which store's tools read it: they use different variables. */
  provider: "s3" | "azure";
}

const fileName = "restore-barman-ca.crt";

/** What a recovery job carries for the authority; empty parts when there is none. */
export function endpointCaParts(ca: EndpointCa | undefined): {
  env: EnvVar[];
  volumes: Volume[];
  mounts: VolumeMount[];
} {
  if (!ca) return { env: [], volumes: [], mounts: [] };
  const variable = ca.provider === "azure" ? "REQUESTS_CA_BUNDLE" : "AWS_CA_BUNDLE";
  return {
    env: [{ name: variable, value: `${paths.certificates}/${fileName}` }],
    volumes: [
      {
        name: "barman-endpoint-ca",
        secret: { secretName: ca.secretName, items: [{ key: ca.key, path: fileName }] },
      },
    ],
    mounts: [{ name: "barman-endpoint-ca", mountPath: `${paths.certificates}/` }],
  };
}
