import { describe, expect, it } from "vitest";
import type { Secret, Service } from "../../../src/api/generated/kubernetes.ts";
import { createAuthority } from "../../../src/pki/issue.ts";
import { type DiscoveryInput, discoverEndpoints, isPluginService } from "../../../src/rpc/discovery.ts";
import { endpointFingerprint } from "../../../src/rpc/endpoint.ts";

const validity = { now: Date.UTC(2026, 0), durationDays: 90 };
const subject = { commonName: "leaf", organizationalUnit: "test" };
const [{ certificate: cert, privateKey: key }, { privateKey: otherKey }] = await Promise.all([
  createAuthority(subject, validity),
  createAuthority(subject, validity),
]);

const annotations = {
  "cnpg.io/pluginClientSecret": "client",
  "cnpg.io/pluginServerSecret": "server",
  "cnpg.io/pluginPort": "9090",
};

function service(changes: { name?: string; plugin?: string; annotations?: Record<string, string> } = {}): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      namespace: "cnpg-system",
      name: changes.name ?? "barman-cloud",
      labels: { "cnpg.io/pluginName": changes.plugin ?? "barman-cloud.cloudnative-pg.io" },
      annotations: { ...annotations, ...changes.annotations },
    },
  };
}

function secrets(data: Record<string, Record<string, string>>): DiscoveryInput["secret"] {
  return (name): Secret | undefined => {
    const texts = data[name];
    if (!texts) return undefined;
    const encoded = Object.entries(texts).map(([field, text]) => [field, Buffer.from(text).toString("base64")]);
    return { apiVersion: "v1", kind: "Secret", metadata: { name }, data: Object.fromEntries(encoded) };
  };
}

const both = { client: { "tls.crt": cert, "tls.key": key }, server: { "tls.crt": cert, "ca.crt": "never read" } };

describe("discovery of plugin Services", () => {
  it("reads label, annotations and both Secrets", () => {
    expect(discoverEndpoints({ services: [service()], secret: secrets(both) })).toEqual({
      endpoints: [
        {
          kind: "tls",
          name: "barman-cloud.cloudnative-pg.io",
          address: "barman-cloud.cnpg-system.svc:9090",
          serverName: "barman-cloud",
          serverRoots: cert,
          clientCertificate: cert,
          clientKey: key,
        },
      ],
      problems: [],
    });
  });

  it("takes the server's name from the annotation", () => {
    const named = service({ annotations: { "cnpg.io/pluginServerName": "other.example.com" } });
    const { endpoints } = discoverEndpoints({ services: [named], secret: secrets(both) });
    expect(endpoints[0]).toMatchObject({
      serverName: "other.example.com",
      address: "barman-cloud.cnpg-system.svc:9090",
    });
  });

  it.each<[string, Service]>([
    ["without the label", { ...service(), metadata: { ...service().metadata, labels: {} } }],
    ["with an empty label", service({ plugin: "" })],
    ["without annotations", { ...service(), metadata: { ...service().metadata, annotations: {} } }],
    ["with an empty annotation", service({ annotations: { "cnpg.io/pluginServerSecret": "" } })],
    [
      "that is being deleted",
      { ...service(), metadata: { ...service().metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } },
    ],
  ])("passes over a Service %s", (_, candidate) => {
    expect(isPluginService(candidate)).toBe(false);
    expect(discoverEndpoints({ services: [candidate], secret: secrets(both) })).toEqual({
      endpoints: [],
      problems: [],
    });
  });

  it.each<[string, Service, Record<string, Record<string, string>>, string]>([
    ["InvalidPortAnnotation", service({ annotations: { "cnpg.io/pluginPort": "grpc" } }), both, 'is "grpc", no port'],
    ["InvalidPortAnnotation", service({ annotations: { "cnpg.io/pluginPort": "70000" } }), both, "no port number"],
    ["ServerSecretNotFound", service(), { client: both.client }, "Secret cnpg-system/server does not exist"],
    ["ClientSecretNotFound", service(), { server: both.server }, "Secret cnpg-system/client does not exist"],
    ["InvalidServerCertificate", service(), { ...both, server: {} }, "tls.crt is missing"],
    ["InvalidServerCertificate", service(), { ...both, server: { "tls.crt": "x" } }, "no PEM certificate"],
    ["InvalidClientCertificate", service(), { ...both, client: { "tls.crt": cert } }, "tls.key is missing"],
    ["InvalidClientCertificate", service(), { ...both, client: { "tls.crt": cert, "tls.key": "x" } }, "no PEM key"],
    [
      "InvalidClientCertificate",
      service(),
      { ...both, client: { "tls.crt": cert, "tls.key": otherKey } },
      "tls.key does not belong to tls.crt",
    ],
  ])("tells %s", (reason, candidate, data, text) => {
    const { endpoints, problems } = discoverEndpoints({ services: [candidate], secret: secrets(data) });
    expect(endpoints).toEqual([]);
    expect(problems).toMatchObject([{ reason, service: { namespace: "cnpg-system", name: "barman-cloud" } }]);
    expect(problems[0]?.message).toContain(text);
  });

  it("gives a name that two Services claim to the first of them", () => {
    const services = [service({ name: "z" }), service({ name: "a" })];
    const { endpoints, problems } = discoverEndpoints({ services, secret: secrets(both) });
    expect(endpoints).toMatchObject([{ serverName: "a" }]);
    expect(problems).toMatchObject([{ service: { name: "z" }, reason: "PluginRegistrationFailed" }]);
  });

  it("can be narrowed to the plugins that clusters enable", () => {
    const services = [service(), service({ name: "other", plugin: "other.example.com" })];
    const { endpoints } = discoverEndpoints({ services, secret: secrets(both), names: ["other.example.com"] });
    expect(endpoints.map(({ name }) => name)).toEqual(["other.example.com"]);
  });
});

describe("an endpoint's fingerprint", () => {
  const [endpoint] = discoverEndpoints({ services: [service()], secret: secrets(both) }).endpoints;
  if (!endpoint) throw new Error("no endpoint");

  it("changes with address, server name and every certificate", () => {
    const changed = (["address", "serverName", "serverRoots", "clientCertificate", "clientKey"] as const).map((field) =>
      endpointFingerprint({ ...endpoint, [field]: "changed" }),
    );
    expect(new Set([endpointFingerprint(endpoint), ...changed]).size).toBe(6);
    expect(endpointFingerprint({ ...endpoint })).toBe(endpointFingerprint(endpoint));
  });
});
