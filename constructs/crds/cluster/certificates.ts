import { type Fields, mapOf, object, string, stringList } from "../parts/builders.ts";

const names: Fields = {
  clientCASecret: string("Secret with the CA of client certificates."),
  replicationTLSSecret: string("Secret with the client certificate that standbys connect with."),
  serverAltDNSNames: stringList("More names that the server certificate is valid for."),
  serverCASecret: string("Secret with the CA of the server certificate."),
  serverTLSSecret: string("Secret with the server certificate."),
};

/** `spec.certificates`: certificates that replace the operator's own. */
export const certificates = object("Certificates that replace those made by the operator.", names);

/** `status.certificates`: certificates in use. */
export const certificatesStatus = object("Certificates in use.", {
  ...names,
  expirations: mapOf("When each certificate expires, by Secret.", { type: "string" }),
});
