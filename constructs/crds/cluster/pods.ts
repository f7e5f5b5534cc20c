import {
  envFromSource,
  envVar,
  ephemeralVolumeSource,
  podSecurityContext,
  projectedVolumeSource,
  resourceRequirements,
  seccompProfile,
  securityContext,
} from "../core/generated/kubernetes.ts";
import { quantity } from "../core/scalars.ts";
import { type Fields, integer, listOf, object, required, stringMap, use } from "../parts/builders.ts";
import { serviceAccountName, templateMetadata } from "../shared/templates.ts";

/** What the pods of the instances look like. */
export const pods: Fields = {
  env: listOf("Environment variables of the instances.", envVar),
  envFrom: listOf("Objects whose keys become environment variables of the instances.", envFromSource),
  ephemeralVolumeSource: use("Volume claim for temporary files instead of an emptyDir.", ephemeralVolumeSource),
  ephemeralVolumesSizeLimit: object("Upper bounds for volumes that live as long as the pod.", {
    shm: use("Bound for shared memory.", quantity),
    temporaryData: use("Bound for temporary files.", quantity),
  }),
  inheritedMetadata: object("Labels and annotations that every object made for the cluster gets.", {
    annotations: stringMap("Annotations to pass on."),
    labels: stringMap("Labels to pass on."),
  }),
  podSecurityContext: use("Security context of the pods, laid over the operator's own.", podSecurityContext),
  postgresGID: integer("Group ID of PostgreSQL in the image.", { bits: 64, default: 26 }),
  postgresUID: integer("User ID of PostgreSQL in the image.", { bits: 64, default: 26 }),
  projectedVolumeTemplate: use("Volume of projected objects, mounted at /projected.", projectedVolumeSource),
  resources: use("CPU and memory of the instances.", resourceRequirements),
  seccompProfile: use("Seccomp profile of the pods; RuntimeDefault by default.", seccompProfile),
  securityContext: use("Security context of the containers, laid over the operator's own.", securityContext),
  serviceAccountName,
  serviceAccountTemplate: object("What the ServiceAccount of the pods is to look like.", {
    metadata: required(templateMetadata),
  }),
};
