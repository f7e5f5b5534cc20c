import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readCatalog, readHistories, readWalRange } from "../../../src/archive/archive-reader.ts";
import { runRetention } from "../../../src/archive/retention-run.ts";
import { type BackupInfo, formatBackupInfo } from "../../../src/barman/backup-info.ts";
import { barmanTimeFromMs, parseBarmanTime } from "../../../src/barman/barman-time.ts";
import { computeRecoveryWindow, type KeepTarget } from "../../../src/barman/catalog.ts";
import { buildCopyStats } from "../../../src/barman/copy-stats.ts";
import { formatBackupId, serverKeys } from "../../../src/barman/object-keys.ts";
import { formatBarmanPolicy, parseRetentionPolicy } from "../../../src/barman/retention.ts";
import { listAll, type ObjectStore } from "../../../src/ports/object-store.ts";
import { formatWalSegment } from "../../../src/postgres/wal-name.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { aBackup } from "../../support/backup-catalog.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";

const bucket = "barman-catalog";
const destination = `s3://${bucket}/deep`;
const hourMs = 3_600_000;
/** One moment for all, so that equal plans have equal IDs. */
const nowMs = Math.floor(Date.now() / 1000) * 1000;

let server: S3Server;
let barman: BarmanTools;
let store: ObjectStore;

beforeAll(async () => {
  server = await startS3Server();
  barman = await barmanTools(server);
  store = await createS3Store(server.options(bucket));
  await store.checkBucket({ create: true });
});

afterAll(async () => {
  store?.close();
  await server?.stop();
});

interface Planned {
  hoursAgo: number;
  facts?: Partial<BackupInfo>;
  keep?: KeepTarget;
}

const segment = (number: number, timeline = 1) => formatWalSegment({ timeline, log: 0, segment: number });

/** A backup of an hour, with every value that a real one has. */
function backup({ hoursAgo, facts }: Planned) {
  const beginMs = nowMs - hoursAgo * hourMs;
  const wal = segment(1000 - hoursAgo);
  const made = aBackup(formatBackupId(beginMs), {
    backupLabel: `START WAL LOCATION: 0/5000028 (file ${wal})\nLABEL: it's a "label" \\ with\ttabs ü\n`,
    backupName: `backup-${beginMs}`,
    beginOffset: 40,
    beginWal: wal,
    beginXlog: 0x5000028n,
    clusterSize: 34_567_890,
    configFile: "/pgdata/postgresql.conf",
    copyStats: buildCopyStats({
      totalTime: 1.5,
      workers: 2,
      copyTimePerItem: { data: 1.25 },
      serializedCopyTimePerItem: { data: 1 },
      copyTime: 1.25,
      serializedCopyTime: 1,
    }),
    dataChecksums: "on",
    endOffset: 312,
    endWal: wal,
    endXlog: 0x5000138n,
    hbaFile: "/pgdata/pg_hba.conf",
    identFile: "/pgdata/pg_ident.conf",
    includedFiles: ["/pgdata/custom.conf", "/pgdata/it's.conf"],
    pgdata: "/pgdata",
    serverName: "cloud",
    summarizeWal: "off",
    systemid: "7364512345678901234",
    tablespaces: [{ name: "tbs1", oid: 16390, location: "/tablespaces/tbs1/data" }],
    version: 170002,
  });
  const info = {
    ...made.info,
    beginTime: barmanTimeFromMs(beginMs + 0.345),
    endTime: barmanTimeFromMs(beginMs + hourMs / 2),
    ...facts,
  };
  return { id: made.id, info };
}

/** Writes the backups of a server, one WAL segment an hour from the oldest on, and a history file. */
async function stock(serverName: string, planned: readonly Planned[]): Promise<string[]> {
  const keys = serverKeys("deep", serverName);
  const ids: string[] = [];
  for (const plan of planned) {
    const { id, info } = backup(plan);
    ids.push(id);
    await store.put(keys.tar(id, "data", 0, "gzip"), [Buffer.from("tar")]);
    await store.put(keys.tar(id, "16390", 1, "gzip"), [Buffer.from("tar")]);
    await store.put(keys.backupInfo(id), [Buffer.from(formatBackupInfo(info))]);
    if (plan.keep) await store.put(keys.keep(id), [Buffer.from(plan.keep)]);
  }
  const oldest = Math.max(0, ...planned.map(({ hoursAgo }) => hoursAgo));
  const names = Array.from({ length: oldest + 3 }, (_, hours) => segment(1000 - hours));
  await Promise.all(names.map((name) => store.put(keys.wal(name, "gzip"), [Buffer.from("wal")])));
  await store.put(keys.wal("00000002.history"), [Buffer.from("1\t0/5000028\tfailover\n")]);
  return ids;
}

async function objects(serverName: string): Promise<string[]> {
  const { prefix } = serverKeys("deep", serverName);
  return (await listAll(store, prefix)).objects.map(({ key }) => key.slice(prefix.length)).sort();
}

describe("backup.info", () => {
  test("Barman's reader saves ours byte by byte, finished, failed and started", async () => {
    const rewrite = [
      "import io, sys",
      // Barman's modules import each other in a ring that has to be entered here.
      "import barman.clients.cloud_backup_list",
      "from barman.infofile import BackupInfo",
      "info = BackupInfo('20260501T101112')",
      "info.load(file_object=io.BytesIO(sys.argv[1].encode()))",
      "out = io.BytesIO()",
      "info.save(file_object=out)",
      "sys.stdout.write(out.getvalue().decode())",
    ].join("\n");
    const variants: Partial<BackupInfo>[] = [
      {},
      { tablespaces: null, includedFiles: null },
      {
        status: "FAILED",
        error: "failure uploading data (disk full)",
        endTime: parseBarmanTime("2026-05-01 10:11:12.000100+02:00") ?? null,
      },
      {
        status: "STARTED",
        backupName: null,
        backupLabel: null,
        copyStats: null,
        endTime: null,
        endWal: null,
        endXlog: null,
        endOffset: null,
      },
    ];
    for (const facts of variants) {
      const text = formatBackupInfo(backup({ hoursAgo: 1, facts }).info);
      const result = await barman.python(rewrite, [text]);
      expect(result).toMatchObject({ code: 0, stderr: "" });
      expect(result.stdout).toBe(text);
    }
  });

  test("barman-cloud-backup-list shows what we know", async () => {
    const ids = await stock("list", [
      { hoursAgo: 9 },
      { hoursAgo: 5, facts: { status: "FAILED", error: "failure uploading data (x)" } },
      { hoursAgo: 2 },
    ]);
    await store.put(`${serverKeys("deep", "list").basePrefix}20200101T000000/data.tar`, [
      Buffer.from("no backup.info"),
    ]);
    const result = await barman.run("backup-list", ["--format", "json", destination, "list"]);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    const listed = (JSON.parse(result.stdout) as { backups_list: Record<string, unknown>[] }).backups_list;
    const catalog = await readCatalog(store, serverKeys("deep", "list"));
    expect(catalog.unreadable).toEqual([]);
    const facts = (one: { id: string; info: BackupInfo }) => ({
      backup_id: one.id,
      status: one.info.status,
      backup_name: one.info.backupName,
      begin_wal: one.info.beginWal,
      timeline: one.info.timeline,
      error: one.info.error,
      tablespaces: one.info.tablespaces?.map(({ name, oid, location }) => [name, oid, location]),
      included_files: one.info.includedFiles,
    });
    expect(listed).toHaveLength(3);
    expect(listed).toEqual(catalog.backups.map((one) => expect.objectContaining(facts(one))));
    expect(catalog.backups.map(({ id }) => id)).toEqual(ids);
    const window = computeRecoveryWindow(catalog);
    expect(window.firstRecoverabilityPointMs).toBe(Date.parse(String(listed[0]?.["end_time_iso"])));
    expect(window.lastSuccessfulBackupMs).toBe(Date.parse(String(listed[2]?.["end_time_iso"])));
  });

  test("a keep annotation that Barman sets is one to us, and the reverse", async () => {
    const [first = "", second = ""] = await stock("keep", [{ hoursAgo: 5 }, { hoursAgo: 2 }]);
    const keep = (args: string[]) => barman.run("backup-keep", [...args]);
    expect(await keep(["--target", "standalone", destination, "keep", first])).toMatchObject({ code: 0 });
    expect(await keep(["--target", "full", `${destination}/`, "keep", second])).toMatchObject({ code: 0 });
    const catalog = await readCatalog(store, serverKeys("deep", "keep"));
    expect(catalog.backups.map((one) => one.keep)).toEqual(["standalone", "full"]);
    await store.put(serverKeys("deep", "keep").keep(second), [Buffer.from("standalone")]);
    expect((await keep(["--status", destination, "keep", second])).stdout).toContain("Keep: standalone");
  });
});

describe("retention", () => {
  const cases: Record<string, { planned: Planned[]; policy: string }> = {
    window: { planned: [200, 150, 100, 60, 20].map((hoursAgo) => ({ hoursAgo })), policy: "3d" },
    "all-young": { planned: [20, 10].map((hoursAgo) => ({ hoursAgo })), policy: "3d" },
    "all-old": { planned: [300, 250, 200].map((hoursAgo) => ({ hoursAgo })), policy: "1d" },
    "kept-full": {
      planned: [{ hoursAgo: 200, keep: "full" }, { hoursAgo: 150 }, { hoursAgo: 100 }, { hoursAgo: 20 }],
      policy: "2d",
    },
    "kept-standalone": {
      planned: [
        { hoursAgo: 200 },
        { hoursAgo: 180, keep: "standalone" },
        { hoursAgo: 150 },
        { hoursAgo: 100 },
        { hoursAgo: 20 },
      ],
      policy: "2d",
    },
    "failed-newest": {
      planned: [{ hoursAgo: 200 }, { hoursAgo: 100 }, { hoursAgo: 20, facts: { status: "FAILED" } }],
      policy: "2d",
    },
    timelines: {
      planned: [
        { hoursAgo: 200 },
        { hoursAgo: 150 },
        { hoursAgo: 100, facts: { timeline: 2, beginWal: segment(900, 2), endWal: segment(900, 2) } },
        { hoursAgo: 20, facts: { timeline: 2, beginWal: segment(980, 2), endWal: segment(980, 2) } },
      ],
      policy: "3d",
    },
    weeks: { planned: [400, 300, 200, 100].map((hoursAgo) => ({ hoursAgo })), policy: "1w" },
  };

  test.each(Object.keys(cases))("%s: the same is left as by Barman's tool", async (name) => {
    const { planned, policy } = cases[name] ?? { planned: [], policy: "" };
    await stock(`ours-${name}`, planned);
    await stock(`theirs-${name}`, planned);
    const result = await barman.run("backup-delete", [
      "--retention-policy",
      formatBarmanPolicy(policy) ?? "",
      destination,
      `theirs-${name}`,
    ]);
    expect(result).toMatchObject({ code: 0 });

    const keys = serverKeys("deep", `ours-${name}`);
    const parsed = parseRetentionPolicy(policy);
    if (!parsed) throw new Error(`${policy} is no policy`);
    const outcome = await runRetention(store, keys, await readCatalog(store, keys), parsed, { nowMs });
    expect(await objects(`ours-${name}`)).toEqual(await objects(`theirs-${name}`));
    const left = await readCatalog(store, keys);
    expect(left.backups.map(({ id }) => id)).toEqual(outcome.kept.map(({ id }) => id));
    expect(await readWalRange(store, keys)).toMatchObject({ last: segment(1000) });
    expect([...(await readHistories(store, keys)).keys()]).toEqual([2]);
  });

  test("an unreadable backup.info blocks both", async () => {
    await stock("blocked", [{ hoursAgo: 300 }, { hoursAgo: 200 }, { hoursAgo: 100 }]);
    const keys = serverKeys("deep", "blocked");
    await store.put(keys.backupInfo("20200101T000000"), [Buffer.from("nonsense\n")]);
    const before = await objects("blocked");
    const result = await barman.run("backup-delete", [
      "--retention-policy",
      "RECOVERY WINDOW OF 1 DAYS",
      destination,
      "blocked",
    ]);
    expect(result.code).toBe(1);
    const policy = { kind: "recoveryWindow" as const, ms: 24 * hourMs };
    const refused = runRetention(store, keys, await readCatalog(store, keys), policy, { nowMs });
    await expect(refused).rejects.toThrow("20200101T000000");
    expect(await objects("blocked")).toEqual(before);
  });
});
