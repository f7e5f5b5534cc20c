import { invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Secrets of the user's: the superuser's password and certificates. */
export const checkSecrets: ClusterRule = ({ spec }) => {
  const {
    serverAltDNSNames = [],
    serverTLSSecret,
    serverCASecret,
    replicationTLSSecret,
    clientCASecret,
  } = spec.certificates ?? {};
  return [
    ...when(
      spec.superuserSecret?.name === "",
      invalid("spec.superusersecret.name", "", "Super user secret name can't be empty"),
    ),
    ...when(
      Boolean(serverTLSSecret) && serverAltDNSNames.length > 0,
      invalid(
        "spec.certificates.serveraltdnsnames",
        serverAltDNSNames,
        "Server alternative DNS names can't be defined when server TLS secret is provided",
      ),
    ),
    ...when(
      Boolean(serverTLSSecret) && !serverCASecret,
      invalid(
        "spec.certificates.servercasecret",
        "",
        "Server CA secret can't be empty when server TLS secret is provided",
      ),
    ),
    ...when(
      Boolean(replicationTLSSecret) && !clientCASecret,
      invalid(
        "spec.certificates.clientcasecret",
        "",
        "Client CA secret can't be empty when client replication secret is provided",
      ),
    ),
  ];
};
