import { ApiObject } from "cdk8s";
import type { Construct } from "constructs";
import { pluginNames } from "./names.ts";
import type { CompiledPluginOptions } from "./options.ts";

/** What cert-manager needs to make the two certificates that the Service names. */
export function addCertificates(scope: Construct, { namespace }: CompiledPluginOptions): void {
  const apiVersion = "cert-manager.io/v1";
  new ApiObject(scope, "Issuer", {
    apiVersion,
    kind: "Issuer",
    metadata: { name: pluginNames.issuer, namespace },
    spec: { selfSigned: {} },
  });
  const add = (name: string, secretName: string, usage: string, names: { commonName: string; dnsNames?: string[] }) =>
    new ApiObject(scope, name, {
      apiVersion,
      kind: "Certificate",
      metadata: { name, namespace },
      spec: {
        secretName,
        ...names,
        duration: "2160h",
        renewBefore: "360h",
        isCA: false,
        usages: [usage],
        issuerRef: { group: "cert-manager.io", kind: "Issuer", name: pluginNames.issuer },
      },
    });
  const { service, serverCertificate, serverSecret, clientCertificate, clientSecret } = pluginNames;
  add(serverCertificate, serverSecret, "server auth", { commonName: service, dnsNames: [service] });
  add(clientCertificate, clientSecret, "client auth", { commonName: clientCertificate });
}
