import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ensureImageArchives,
  type ImageArchive,
  operatorImage,
  pluginImage,
  postgresImage,
} from "../../../images/archives.ts";

interface ImageConfig {
  created: string;
  config: { User?: string; Env?: string[]; Entrypoint?: string[] };
}

const work = mkdtempSync(join(tmpdir(), "cnpg-ts-images-"));
let archives: ImageArchive[];

beforeAll(async () => {
  archives = await ensureImageArchives();
}, 900_000);
afterAll(() => rm(work, { recursive: true, force: true }));

const tar = (...args: string[]) => {
  const result = spawnSync("tar", args, { encoding: "utf8", maxBuffer: 1 << 26 });
  expect(result.stderr).toBe("");
  return result.stdout;
};

/** Unpacks an image as a container runtime would; gives its root and configuration. */
async function unpack(archive: ImageArchive): Promise<{ root: string; image: ImageConfig; tags: string[] }> {
  const folder = join(work, archive.name.replaceAll(/\W/g, "-"));
  const root = join(folder, "root");
  await mkdir(root, { recursive: true });
  tar("-xf", archive.path, "-C", folder);
  const [manifest] = JSON.parse(await readFile(join(folder, "manifest.json"), "utf8"));
  for (const layer of manifest.Layers) tar("-xpf", join(folder, layer), "-C", root);
  return { root, image: JSON.parse(await readFile(join(folder, manifest.Config), "utf8")), tags: manifest.RepoTags };
}

/** Runs inside of an image's root with a /dev and /proc, as the user of the image. */
function runInside(root: string, user: string, environment: string[], ...command: string[]) {
  const script = `mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec env -i ${environment.map((e) => `'${e}'`).join(" ")} chroot --userspec=${user} "$0" "$@"`;
  return spawnSync("unshare", ["--mount", "--pid", "--fork", "sh", "-c", script, root, ...command], {
    encoding: "utf8",
  });
}

it("are named in order, and made once", async () => {
  expect(archives.map(({ name }) => name)).toEqual([
    operatorImage,
    pluginImage,
    postgresImage("17"),
    postgresImage("18"),
  ]);
  const lines: string[] = [];
  expect(await ensureImageArchives({ log: (line) => lines.push(line) })).toEqual(archives);
  expect(lines).toEqual([]);
});

it("refuse a name that is none of them", async () => {
  await expect(ensureImageArchives({ only: ["localhost/postgresql:9"] })).rejects.toThrow("localhost/postgresql:17");
});

describe("the operator's image", () => {
  it("starts the launcher as user 10001 on a root of ours alone", async () => {
    const [archive] = archives;
    if (!archive) throw new Error("no archive");
    const { root, image, tags } = await unpack(archive);
    expect(tags).toEqual([operatorImage]);
    expect(image.config.User).toBe("10001:10001");
    expect(image.config.Entrypoint).toEqual(["/manager"]);
    expect(image.created).toBe("1970-01-01T00:00:00Z");
    const files = spawnSync("find", [".", "-type", "f"], { cwd: root, encoding: "utf8" })
      .stdout.trim()
      .split("\n")
      .sort();
    expect(files.filter((name) => !name.startsWith("./runtime/lib/"))).toEqual([
      "./etc/ssl/certs/ca-certificates.crt",
      "./manager",
      "./runtime/manager.cjs",
      "./runtime/manifest.json",
      "./runtime/node",
      "./runtime/node-args",
      "./runtime/operator.cjs",
    ]);
    const version = spawnSync("chroot", ["--userspec=10001:10001", root, "/manager", "version"], { encoding: "utf8" });
    expect(version.stdout).toMatch(/^Build: \{Version:/);
    const help = spawnSync("chroot", ["--userspec=10001:10001", root, "/manager", "controller", "--help"], {
      encoding: "utf8",
    });
    expect(help.status).toBe(0);
    expect(help.stdout).toContain("leader-elect");
  });
});

describe("the plugin's image", () => {
  it("answers by /manager as any user, on a root of ours alone that nobody writes to", async () => {
    const archive = archives.find(({ name }) => name === pluginImage);
    if (!archive) throw new Error("no archive");
    const { root, image } = await unpack(archive);
    expect(image.config.User).toBe("10001:10001");
    expect(image.config.Entrypoint).toEqual(["/manager"]);
    const settings = (image.config.Env ?? []).map((entry) => entry.split(/=(.*)/s, 2));
    expect(settings).toContainEqual(["NODE_OPTIONS", "--max-semi-space-size=1"]);
    const env = { ...Object.fromEntries(settings), PATH: process.env["PATH"] };
    const run = (user: string, ...command: string[]) =>
      spawnSync("chroot", [`--userspec=${user}`, root, "/manager", ...command], { encoding: "utf8", env });
    expect(run("26:26", "healthcheck", "unix")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("/plugins/"),
    });
    expect(run("10001:10001", "healthcheck")).toMatchObject({ status: 125 });
    expect(run("10001:10001", "operator")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("SIDECAR_IMAGE"),
    });
    expect(run("10001:10001", "operator", "--help").stdout).toContain("--certificates-service");
    // What libraries ask of their system, for a user that is in no list.
    await writeFile(join(root, "etc", "hosts"), "127.0.0.1 archive.example\n");
    const script = `require("dns").lookup("archive.example", (e, a) => console.log(e?.code, a, require("os").homedir()))`;
    const asked = ["--userspec=4711:4711", root, "/runtime/node", "-e", script];
    expect(spawnSync("chroot", asked, { encoding: "utf8", env }).stdout).toBe("undefined 127.0.0.1 /\n");
  });
});

describe.each(["17", "18"] as const)("the PostgreSQL %s image", (major) => {
  it("has PostgreSQL on PATH, user 26, and makes databases with C, glibc and ICU locales", async () => {
    const archive = archives.find(({ name }) => name === postgresImage(major));
    if (!archive) throw new Error("no archive");
    const { root, image } = await unpack(archive);
    expect(image.config.User).toBe("26");
    expect(image.config.Env?.find((entry) => entry.startsWith("PATH="))).toContain(`/usr/lib/postgresql/${major}/bin`);
    expect(await readFile(join(root, "etc/passwd"), "utf8")).toMatch(/^postgres:x:26:26:/m);
    expect((await stat(join(root, "var/lib/postgresql"))).uid).toBe(26);
    const environment = image.config.Env ?? [];
    const run = (...command: string[]) => runInside(root, "26:26", environment, ...command);
    for (const tool of [
      "postgres",
      "psql",
      "initdb",
      "pg_ctl",
      "pg_basebackup",
      "pg_rewind",
      "pg_controldata",
      "pg_dump",
      "pg_restore",
      "pg_upgrade",
    ])
      expect(run(tool, "--version").stdout).toContain(` ${major}.`);
    const initdb = (name: string, ...args: string[]) =>
      run("initdb", "-D", `/var/lib/postgresql/${name}`, "--no-sync", ...args);
    expect(initdb("c", "--locale=C.UTF-8").status).toBe(0);
    expect(initdb("us", "--locale=en_US.UTF-8").status).toBe(0);
    expect(initdb("icu", "--locale-provider=icu", "--icu-locale=de-DE", "--locale=C.UTF-8").status).toBe(0);
    expect(
      run("sh", "-c", "ls $(pg_config --pkglibdir 2>/dev/null || echo /usr/lib/postgresql/*/lib)/pgaudit.so").status,
    ).toBe(0);
  });
});
