// Which Services are plugins, and what is needed to call them (reference: CNPG-I §2.1). Pure; needs no gRPC library.
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Secret, Service } from "../api/generated/kubernetes.ts";
import { pluginService } from "../api/plugin-service.ts";
import type { TlsEndpoint } from "./endpoint.ts";

/** A plugin Service with what its annotations say. */
export interface DiscoveredPlugin {
  name: string;
  service: { namespace: string; name: string };
  address: string;
  serverName: string;
  clientSecret: string;
  serverSecret: string;
}

/** A reason in the words of the events that Go operators write on the Service. */
export type DiscoveryProblemReason =
  | "ServerSecretNotFound"
  | "ClientSecretNotFound"
  | "InvalidPortAnnotation"
  | "InvalidClientCertificate"
  | "InvalidServerCertificate"
  | "PluginRegistrationFailed";

/** Why a plugin Service cannot be used now. */
export interface DiscoveryProblem {
  service: { namespace: string; name: string };
  plugin: string;
  reason: DiscoveryProblemReason;
  message: string;
}

export interface DiscoveryInput {
  /** Services of the operator's namespace; others than plugins are passed over. */
  services: readonly Service[];
  /** Looks up a Secret of the same namespace. */
  secret: (name: string) => Secret | undefined;
  /** Only these plugins, usually those that clusters enable. @default all */
  names?: readonly string[];
}

export interface DiscoveryResult {
  endpoints: TlsEndpoint[];
  problems: DiscoveryProblem[];
}

/** The endpoints of all usable plugin Services, in the order of their names. A name that two Services claim goes to the first. */
export function discoverEndpoints(input: DiscoveryInput): DiscoveryResult {
  const result: DiscoveryResult = { endpoints: [], problems: [] };
  const services = [...input.services].sort((a, b) => compare(a.metadata.name ?? "", b.metadata.name ?? ""));
  for (const service of services) {
    const found = readPluginService(service);
    if (!found || (input.names && !input.names.includes(found.name))) continue;
    const endpoint = isProblem(found) ? found : buildEndpoint(found, input.secret);
    if (isProblem(endpoint)) result.problems.push(endpoint);
    else if (result.endpoints.some(({ name }) => name === endpoint.name)) {
      const because = `another Service has the label ${pluginService.label}=${endpoint.name} already; remove one of them`;
      result.problems.push(problem(found, "PluginRegistrationFailed", because));
    } else result.endpoints.push(endpoint);
  }
  return result;
}

/** Whether the Service says, with all it takes, that it is a plugin; an empty value says nothing. */
export function isPluginService(service: Service): boolean {
  return readPluginService(service) !== undefined;
}

type Found = Omit<DiscoveredPlugin, "address"> & { port: string };

function readPluginService(service: Service): Found | undefined {
  const name = service.metadata.labels?.[pluginService.label];
  const annotations = service.metadata.annotations ?? {};
  const clientSecret = annotations[pluginService.clientSecret];
  const serverSecret = annotations[pluginService.serverSecret];
  const port = annotations[pluginService.port];
  // A Service that is being deleted serves no new connection.
  if (!name || !clientSecret || !serverSecret || !port || service.metadata.deletionTimestamp) return undefined;
  const serviceName = service.metadata.name ?? "";
  return {
    name,
    service: { namespace: service.metadata.namespace ?? "", name: serviceName },
    serverName: annotations[pluginService.serverName] || serviceName,
    clientSecret,
    serverSecret,
    port,
  };
}

function buildEndpoint(found: Found, secret: DiscoveryInput["secret"]): TlsEndpoint | DiscoveryProblem {
  const { namespace, name } = found.service;
  const port = /^\d{1,5}$/.test(found.port) ? Number(found.port) : 0;
  if (port < 1 || port > 65_535) {
    return problem(
      found,
      "InvalidPortAnnotation",
      `annotation ${pluginService.port} is "${found.port}", no port number`,
    );
  }
  const server = secret(found.serverSecret);
  if (!server)
    return problem(found, "ServerSecretNotFound", `Secret ${namespace}/${found.serverSecret} does not exist`);
  const client = secret(found.clientSecret);
  if (!client)
    return problem(found, "ClientSecretNotFound", `Secret ${namespace}/${found.clientSecret} does not exist`);
  const serverRoots = read(server, "tls.crt");
  const wrongRoots = checkCertificate(serverRoots);
  if (wrongRoots) {
    return problem(found, "InvalidServerCertificate", `Secret ${namespace}/${found.serverSecret}: ${wrongRoots}`);
  }
  const [clientCertificate, clientKey] = [read(client, "tls.crt"), read(client, "tls.key")];
  const wrongPair = checkPair(clientCertificate, clientKey);
  if (wrongPair) {
    return problem(found, "InvalidClientCertificate", `Secret ${namespace}/${found.clientSecret}: ${wrongPair}`);
  }
  const address = `${name}.${namespace}.svc:${port}`;
  return {
    kind: "tls",
    name: found.name,
    address,
    serverName: found.serverName,
    serverRoots,
    clientCertificate,
    clientKey,
  };
}

function checkCertificate(pem: string): string | null {
  if (pem === "") return "tls.crt is missing";
  try {
    new X509Certificate(pem);
    return null;
  } catch {
    return "tls.crt holds no PEM certificate";
  }
}

function checkPair(certificate: string, key: string): string | null {
  const wrong = checkCertificate(certificate);
  if (wrong) return wrong;
  if (key === "") return "tls.key is missing";
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
      ? null
      : "tls.key does not belong to tls.crt";
  } catch {
    return "tls.key holds no PEM key";
  }
}

function read(secret: Secret, key: string): string {
  return Buffer.from(secret.data?.[key] ?? "", "base64").toString("utf8");
}

function problem(found: Found, reason: DiscoveryProblemReason, text: string): DiscoveryProblem {
  const { namespace, name } = found.service;
  const message = `Service ${namespace}/${name} of plugin ${found.name}: ${text}`;
  return { service: found.service, plugin: found.name, reason, message };
}

function isProblem(value: object): value is DiscoveryProblem {
  return "reason" in value;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
