import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { bucket, ensureS3Credentials, insideEndpoint, insidePorts } from "../../object-store/local-store.ts";
import { renderIdentities, seaweedArguments } from "../../object-store/seaweed.ts";
import { waitFor } from "../../process/wait.ts";
import { network } from "../addresses.ts";
import type { ClusterFolders } from "../folders.ts";
import type { Daemons } from "./daemon.ts";
import { writeIfChanged } from "./write-if-changed.ts";

/** Starts the S3 server for backups and makes its bucket. */
export async function startObjectStore(folders: ClusterFolders, daemons: Daemons, program: string): Promise<void> {
  const credentials = ensureS3Credentials(folders.objectStore);
  const identities = renderIdentities(credentials);
  const identitiesFile = join(folders.objectStore, "identities.json");
  writeIfChanged(identitiesFile, identities);
  const data = join(folders.objectStore, "data");
  mkdirSync(data, { recursive: true });
  await daemons.ensure({
    name: "object-store",
    command: program,
    args: [
      ...seaweedArguments({
        folder: data,
        address: network.controlPlane,
        identitiesFile,
        ports: insidePorts(folders.root),
      }),
      `-s3.localSocket=${join(folders.objectStore, "s3.sock")}`,
    ],
    configuration: [identities],
    // 403 without credentials: the gateway reaches its own parts.
    ready: async () => (await fetch(insideEndpoint).catch(() => undefined))?.status === 403,
  });
  const client = new S3Client({
    endpoint: insideEndpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: credentials.accessKey, secretAccessKey: credentials.secretKey },
  });
  await waitFor(
    `bucket ${bucket}`,
    () =>
      client.send(new CreateBucketCommand({ Bucket: bucket })).then(
        () => true,
        (error: Error) => /^BucketAlready/.test(error.name),
      ),
    { timeoutMs: 60_000, everyMs: 300 },
  );
  client.destroy();
}
