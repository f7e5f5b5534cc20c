// The liveness probe of a primary that loses sight of the API server and of its peers, as the kubelet would ask it.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ports } from "../../../src/api/constants.ts";
import { type ApiProxy, proxyApiServer } from "./api-proxy.ts";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

/** Addresses of this host that nothing else listens on. */
const peers = { "lab-2": "127.42.0.2", "lab-3": "127.42.0.3" };
const isolated = {
  status: 500,
  body: "liveness check failed: the API server and all peers (lab-2, lab-3) are unreachable",
};
const alive = { status: 200, body: "OK" };

let lab: Lab;
let one: LabInstance;
let api: ApiProxy;

beforeAll(async () => {
  // The right to write must outlast the test: by default it ends, and PostgreSQL with it, before a kubelet asks a second time.
  const primaryLease = { leaseDurationSeconds: 180, renewDeadlineSeconds: 120, retryPeriodSeconds: 2 };
  lab = await Lab.start({ instances: 3, spec: { primaryLease } });
  api = await proxyApiServer(lab, "lab-1");
  one = await lab.instance("lab-1");
  const start = (it: LabInstance) => it.run({ environment: { KUBECONFIG: api.kubeconfig } });
  await bootPrimary(lab, one, { start, checksums: false });
  const reported = Object.entries({ "lab-1": "127.0.0.1", ...peers });
  await lab.patchStatus({
    instancesReportedState: Object.fromEntries(
      reported.map(([name, ip]) => [name, { ip, isPrimary: name === "lab-1" }]),
    ),
  });
  await until("the manager knows its peers", async () => {
    const answer = await fetch(`http://127.0.0.1:${one.ports.local}/cache/cluster`);
    return (await answer.text()).includes(peers["lab-3"]);
  });
});

afterAll(async () => {
  await lab?.stop();
  await api?.close();
});

/** A peer that answers, with the paths that it was asked for. */
async function startPeer(host: string): Promise<{ server: Server; asked: string[] }> {
  const [cert, key] = ["server.crt", "server.key"].map((name) => readFileSync(join(one.scratch, "certificates", name)));
  const asked: string[] = [];
  const server = createServer({ cert, key, minVersion: "TLSv1.3" }, (request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(404).end();
  });
  server.listen(ports.status, host);
  await once(server, "listening");
  return { server, asked };
}

async function stopPeer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

test("a primary that sees the API server is alive, whoever else answers", async () => {
  expect(await one.get("/healthz")).toEqual(alive);
});

test("without the API server one peer that answers anything is enough", async () => {
  const { server, asked } = await startPeer(peers["lab-3"]);
  api.cut();
  expect(await one.get("/healthz")).toEqual(alive);
  expect(asked).toContain("/failsafe");
  await stopPeer(server);
});

test("without the API server and every peer it is isolated, though its PostgreSQL still runs, and is alive again with the API server", async () => {
  expect(await one.get("/healthz")).toEqual(isolated);
  expect(one.psql("SELECT pg_is_in_recovery()")).toBe("f");
  api.restore();
  await until("alive", async () => (await one.get("/healthz")).status === 200);
});

test("the kubelet's signal to an isolated primary ends its sessions without patience", async () => {
  api.cut();
  expect(await one.get("/healthz")).toEqual(isolated);
  const session = one.session("SELECT pg_sleep(600)");
  const find = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'";
  await until("the session runs", async () => one.psql(find) === "1");
  const start = one.output.length;
  one.signal("SIGTERM");
  expect(await one.exit, one.output.slice(-2000)).toBe(0);
  session.kill();
  const modes = [...one.output.slice(start).matchAll(/Shutting down instance.*"mode":"(\w+)"/g)].map(
    ([, mode]) => mode,
  );
  expect(modes).toEqual(["fast"]);
  expect(one.control()).toContain("shut down");
}, 120_000);
