import type { TestCluster } from "./cluster.ts";
import { apply, getObject, kubectl } from "./kubectl.ts";
import { waitFor } from "./wait.ts";

/** A row whose commit was acknowledged. */
export interface AcknowledgedRow {
  readonly row: number;
  /** When the writer was told so, in seconds since the epoch. */
  readonly at: number;
  /** Address of the server that said so. */
  readonly server: string;
}

/** A pod that inserts numbered rows through the read-write Service, one connection each, and prints each outcome. */
export interface Writer {
  acknowledged(): Promise<AcknowledgedRow[]>;
  /** Longest time between two acknowledgements, in seconds. */
  longestGap(): Promise<number>;
  stop(): Promise<void>;
}

// The address is given as a number: a lost packet to the cluster's DNS costs five seconds and says nothing of PostgreSQL.
// Numbers start at the time of day, so that a second writer on the same cluster never meets the first one's rows.
// A peer that is gone without a word is given up after two seconds.
const prologue = `
URI="$URI?connect_timeout=1&tcp_user_timeout=2000&hostaddr=$ADDRESS"
until psql "$URI" -X -q -c 'create table if not exists writes (id bigint primary key)'; do sleep 0.2; done
i=\${FIRST:-$((EPOCHSECONDS * 10000))}
`;

const manySessions = `${prologue}
while true; do
  i=$((i+1))
  if server=$(timeout -s KILL 5 psql "$URI" -X -q -A -t -v ON_ERROR_STOP=1 -c "insert into writes values ($i) returning host(inet_server_addr())" 2>/dev/null); then
    echo "ok $i $EPOCHREALTIME $server"
  else
    sleep 0.02
  fi
done
`;

// A session that could not even begin, as happens on a busy machine, is tried again with other numbers.
const oneSession = `${prologue}
until [ -e /tmp/began ]; do
  sleep 0.2
  i=$((i+1000))
  while true; do
    i=$((i+1))
    echo "insert into writes values ($i) returning id, host(inet_server_addr());"
    sleep 0.02
  done | psql "$URI" -X -q -A -t -F ' ' -v ON_ERROR_STOP=1 | while read -r row server; do
    # The time is the writer's own: the server's clock may be wrong, and it looks at it before the commit.
    echo "ok $row $EPOCHREALTIME $server"
    [ -e /tmp/began ] || touch /tmp/began
  done
done
echo "the session ended"
sleep infinity
`;

/** How a writer reaches the primary. */
export interface WriterOptions {
  /** Address to connect to. @default - the read-write Service's */
  readonly address?: string;
  /** Keeps one session for all rows instead of one for each; the writer falls silent when it breaks. @default false */
  readonly oneSession?: boolean;
  /** Node to run on. @default - any */
  readonly node?: string;
  /** Name of its pod; each of several writers of a cluster needs its own. @default "writer" */
  readonly name?: string;
  /** Number of the first row, when several writers insert. @default - by the time of day */
  readonly firstRow?: number;
}

/** Starts the writer and waits for its first acknowledged row. */
export async function startWriter(cluster: TestCluster, options: WriterOptions = {}): Promise<Writer> {
  const name = options.name ?? "writer";
  const service = await getObject<{ spec: { clusterIP: string } }>(cluster.namespace, "service", `${cluster.name}-rw`);
  const remove = () =>
    kubectl(["delete", "pod", name, "-n", cluster.namespace, "--grace-period=0", "--force", "--ignore-not-found"]);
  // One that a failed test left behind.
  await remove();
  await apply({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: cluster.namespace },
    spec: {
      terminationGracePeriodSeconds: 0,
      ...(options.node === undefined ? {} : { nodeName: options.node }),
      // On a node that is lost it stays where it is.
      tolerations: [{ operator: "Exists" }],
      containers: [
        {
          name: "writer",
          image: "localhost/postgresql:17",
          imagePullPolicy: "IfNotPresent",
          command: ["bash", "-c", options.oneSession ? oneSession : manySessions],
          env: [
            { name: "URI", valueFrom: { secretKeyRef: { name: `${cluster.name}-app`, key: "uri" } } },
            { name: "ADDRESS", value: options.address ?? service?.spec.clusterIP },
            { name: "FIRST", value: String(options.firstRow ?? "") },
          ],
        },
      ],
    },
  });
  const acknowledged = async () => {
    const text = await kubectl(["logs", "-n", cluster.namespace, name]);
    return text
      .split("\n")
      .map((line) => /^ok (\d+) ([\d.]+) ([\d.]+)$/.exec(line))
      .filter((match) => match !== null)
      .map(([, row, at, server = ""]) => ({ row: Number(row), at: Number(at), server }));
  };
  await waitFor(
    "first acknowledged write",
    120_000,
    async () => (await acknowledged()).length > 3,
    () => kubectl(["logs", "-n", cluster.namespace, name, "--tail=20"]),
  );
  return {
    acknowledged,
    longestGap: async () => {
      const times = (await acknowledged()).map(({ at }) => at);
      return times.slice(1).reduce((longest, at, index) => Math.max(longest, at - (times[index] ?? at)), 0);
    },
    stop: async () => {
      await remove();
    },
  };
}

/** Numbers of the rows that the primary has. */
export async function storedRows(cluster: TestCluster): Promise<ReadonlySet<number>> {
  return new Set((await cluster.sql(await cluster.primary(), "select id from writes")).split("\n").map(Number));
}
