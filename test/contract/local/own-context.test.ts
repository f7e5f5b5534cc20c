import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKubectl } from "../../../local/cluster/kubectl.ts";
import { checkOwnCluster } from "../../../local/own-context.ts";
import { applyArguments } from "../../../local/quickstart/deploy.ts";
import { startUserKubernetes, type UserKubernetes } from "../../support/user-kubernetes.ts";

const registry = ["--registry", "localhost:1/team"];

let kubernetes: UserKubernetes;
let before: string;

beforeAll(async () => {
  kubernetes = await startUserKubernetes();
  const { kubectl } = kubernetes.controlPlane;
  await kubectl(["create", "serviceaccount", "guest", "-n", "default"]);
  const tokenOf = async (name: string) => (await kubectl(["create", "token", name, "-n", "default"])).trim();
  kubernetes.addContext("limited", await tokenOf("guest"));
  kubernetes.addContext("expired", "not-a-token");
  // May write every kind that an installation consists of, and holds none of the rights that it would hand out.
  await kubectl(["create", "serviceaccount", "deployer", "-n", "default"]);
  await kubectl([
    ...["create", "clusterrole", "deployer", "--verb=get,create,patch"],
    "--resource=namespaces,customresourcedefinitions.apiextensions.k8s.io,clusterroles.rbac.authorization.k8s.io,clusterrolebindings.rbac.authorization.k8s.io,mutatingwebhookconfigurations.admissionregistration.k8s.io,validatingwebhookconfigurations.admissionregistration.k8s.io",
  ]);
  await kubectl([
    "create",
    "clusterrolebinding",
    "deployer",
    "--clusterrole=deployer",
    "--serviceaccount=default:deployer",
  ]);
  kubernetes.addContext("deployer", await tokenOf("deployer"));
  before = await content();
});

afterAll(() => kubernetes?.stop());

/** Everything that an installation would add to. */
async function content(): Promise<string> {
  const kinds = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,validatingwebhookconfigurations";
  return kubernetes.controlPlane.kubectl(["get", `${kinds},deployments,clusterroles`, "-A", "-o", "name"]);
}

async function refusal(context: string): Promise<string> {
  const { code, output } = await kubernetes.start(["--context", context, ...registry]);
  expect(code, output).toBe(1);
  // No image was built, nothing was written, and the message is all there is.
  expect(output).not.toContain("Building");
  expect(output).not.toMatch(/^\s+at /m);
  return output;
}

describe("npm start -- --context", () => {
  it("refuses a context that the kubeconfig lacks, and names those that it has", async () => {
    expect(await refusal("prod")).toBe(
      "Your kubeconfig has no context prod. It has: mine, away, production, limited, expired, deployer.\n",
    );
  });

  it("says that a cluster does not answer, and how to see when it does", async () => {
    const output = await refusal("away");
    expect(output).toMatch(/^Context away can't be used: .*refused/);
    expect(output).toContain("`kubectl --context away version`");
  });

  it("says that the server knows no such user", async () => {
    expect(await refusal("expired")).toMatch(/^Context expired can't be used: .*(logged in|Unauthorized)/);
  });

  it("says what a user may not do, before anything is built", async () => {
    const output = await refusal("limited");
    expect(output).toMatch(
      /^Context limited may not install the operator: User "system:serviceaccount:default:guest" cannot \w+ .* \(and \d+ more\)\.$/m,
    );
    expect(output).toContain("use a context that has them");
  });

  it("notices that a user may not hand out the rights which the operator needs", async () => {
    expect(await refusal("deployer")).toMatch(
      /^Context deployer may not install the operator: is attempting to grant RBAC permissions/m,
    );
  });

  it("does not replace an operator that somebody else has installed", async () => {
    const { kubectl } = kubernetes.controlPlane;
    await kubectl(["create", "namespace", "cnpg-system"]);
    const image = "example.org/cloudnative-pg:1.30.0";
    await kubectl(["create", "deployment", "cnpg-controller-manager", "-n", "cnpg-system", `--image=${image}`]);
    const output = await refusal("mine");
    expect(output).toContain(`cnpg-system/cnpg-controller-manager with image ${image}`);
    expect(output).toContain("remove that installation first");
    await kubectl(["delete", "deployment", "cnpg-controller-manager", "-n", "cnpg-system"]);
    await kubectl(["delete", "namespace", "cnpg-system", "--wait=false"]);
  });

  it("takes up an installation of its own again", async () => {
    const { kubectl, kubeconfig } = kubernetes.controlPlane;
    const deployment = ["create", "deployment", "cnpg-controller-manager", "--image=localhost/cnpg-ts:dev"];
    const text = await kubectl([...deployment, "-n", "default", "--dry-run=client", "-o", "json"]);
    const manifest = JSON.parse(text) as { metadata: object };
    const own = { ...manifest, metadata: { ...manifest.metadata, namespace: "cnpg-own" } };
    await kubectl(["create", "namespace", "cnpg-own"]);
    await kubectl([...applyArguments], JSON.stringify(own));
    const client = createKubectl([`--kubeconfig=${kubeconfig}`]);
    await expect(checkOwnCluster(client, "mine", "cnpg-own")).resolves.toBeUndefined();
    await kubectl(["delete", "deployment", "cnpg-controller-manager", "-n", "cnpg-own"]);
    await kubectl(["delete", "namespace", "cnpg-own", "--wait=false"]);
  });

  it("has changed nothing by all this, and never talked to another context's cluster", async () => {
    const left = (await content()).split("\n").filter((it) => !/^namespace\/cnpg-(system|own)$/.test(it));
    expect(left).toEqual(before.split("\n"));
    expect(kubernetes.touched()).toBe(0);
    expect(kubernetes.kubeconfig()).toContain("current-context: production");
  });
});
