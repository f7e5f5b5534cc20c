import { describe, expect, it } from "vitest";
import { parseKubeconfig } from "../../../src/kube/kubeconfig.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const text = `
current-context: one
contexts:
  - { name: one, context: { cluster: c1, user: cert, namespace: ns } }
  - { name: two, context: { cluster: c2, user: token } }
  - { name: three, context: { cluster: c2, user: login } }
  - { name: four, context: { cluster: missing, user: token } }
  - { name: five, context: { cluster: c2, user: file } }
clusters:
  - name: c1
    cluster: { server: "https://127.0.0.1:6443/", certificate-authority-data: ${base64("CA")}, tls-server-name: kube }
  - name: c2
    cluster: { server: "https://example.test", certificate-authority: ca.crt, insecure-skip-tls-verify: true }
users:
  - name: cert
    user: { client-certificate-data: ${base64("CERT")}, client-key: key.pem }
  - { name: token, user: { token: t0k3n } }
  - { name: login, user: { exec: { command: aws } } }
  - { name: file, user: { tokenFile: /token } }
`;
const read = (context?: string) =>
  parseKubeconfig(text, { origin: "config", context, readFile: (name) => `content of ${name}` });

describe("parseKubeconfig", () => {
  it("reads the current context with a client certificate", () => {
    expect(read()).toEqual({
      server: "https://127.0.0.1:6443",
      ca: "CA",
      serverName: "kube",
      clientCert: "CERT",
      clientKey: "content of key.pem",
      namespace: "ns",
    });
  });

  it("reads a named context with a token", () => {
    const connection = read("two");
    expect(connection).toMatchObject({
      server: "https://example.test",
      ca: "content of ca.crt",
      insecureSkipTlsVerify: true,
    });
    expect(connection.token?.()).toBe("t0k3n");
    expect(read("five").token?.()).toBe("content of /token");
  });

  it.each([
    ["three", "logs in by a program"],
    ["four", "has no cluster named missing"],
    ["nope", "has no context named nope"],
  ])("refuses context %s with a reason", (context, message) => {
    expect(() => read(context)).toThrow(message);
  });

  it("refuses an empty file", () => {
    expect(() => parseKubeconfig("", { origin: "config", readFile: () => "" })).toThrow("no current-context");
  });
});
