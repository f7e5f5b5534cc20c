import type { k8s } from "cdk8s-plus-28";

/** Security settings of a program's pod that some platforms want to choose themselves. */
export interface ProgramSecurity {
  /** Fixed user and group id; `false` leaves the choice to the platform. @default 10001 */
  readonly runAsUser?: number | false;
  /** @default true */
  readonly runAsNonRoot?: boolean;
  /** @default true */
  readonly readOnlyRootFilesystem?: boolean;
  /** Adds seccomp profile RuntimeDefault. @default true */
  readonly seccompProfile?: boolean;
  /** Drops every Linux capability. @default true */
  readonly dropCapabilities?: boolean;
}

/** Fills in the defaults: what namespaces with the restricted Pod Security Standard ask for. */
export function compileSecurity(security: ProgramSecurity = {}): Required<ProgramSecurity> {
  return {
    runAsUser: security.runAsUser ?? 10001,
    runAsNonRoot: security.runAsNonRoot ?? true,
    readOnlyRootFilesystem: security.readOnlyRootFilesystem ?? true,
    seccompProfile: security.seccompProfile ?? true,
    dropCapabilities: security.dropCapabilities ?? true,
  };
}

export function podSecurity(security: Required<ProgramSecurity>): k8s.PodSecurityContext {
  return {
    ...(security.runAsNonRoot && { runAsNonRoot: true }),
    ...(security.seccompProfile && { seccompProfile: { type: "RuntimeDefault" } }),
  };
}

export function containerSecurity(security: Required<ProgramSecurity>): k8s.SecurityContext {
  return {
    allowPrivilegeEscalation: false,
    ...(security.dropCapabilities && { capabilities: { drop: ["ALL"] } }),
    ...(security.readOnlyRootFilesystem && { readOnlyRootFilesystem: true }),
    ...(security.runAsNonRoot && { runAsNonRoot: true }),
    ...(security.runAsUser !== false && { runAsUser: security.runAsUser, runAsGroup: security.runAsUser }),
    ...(security.seccompProfile && { seccompProfile: { type: "RuntimeDefault" } }),
  };
}
