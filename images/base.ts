import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { debianMirror, ensureAptPackages } from "./apt.ts";
import { cacheFolder, hashText } from "./cache.ts";
import { runCommand } from "./command.ts";

/** PostgreSQL major versions with a local image, and the Debian suite that has them. */
export const suites = { "17": "trixie", "18": "sid" } as const;
export type PostgresMajor = keyof typeof suites;

/** Arguments of mmdebstrap for a root file system with PostgreSQL in it, mirror and output left out. */
export function baseRecipe(major: PostgresMajor): string[] {
  // JIT compilation would be two thirds of the image, and PostgreSQL goes on without it when its provider is absent.
  const left = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/lib/postgresql/*/lib/bitcode/*",
    "/usr/lib/postgresql/*/lib/llvmjit*",
    "/usr/lib/*/libLLVM*",
    "/usr/lib/*/libz3.so*",
  ];
  return [
    "--variant=minbase",
    "--mode=root",
    "--format=tar",
    "--components=main",
    `--include=postgresql-${major},postgresql-${major}-pgaudit,locales`,
    '--aptopt=APT::Install-Recommends "false"',
    // A frozen mirror's lists expire; their signatures are still checked.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    ...left.map((path) => `--dpkgopt=path-exclude=${path}`),
    '--essential-hook=mkdir -p "$1/etc/postgresql-common"',
    '--essential-hook=echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"',
    '--customize-hook=chroot "$1" localedef -i en_US -f UTF-8 en_US.UTF-8',
    '--customize-hook=rm -rf "$1/var/cache/ldconfig" "$1/var/log/"*.log "$1/var/log/apt" "$1/etc/ssl/private/ssl-cert-snakeoil.key"',
    suites[major],
  ];
}

/** Makes the root file system for a PostgreSQL image and gives its tar file, kept in the cache by recipe. */
export async function ensurePostgresBase(major: PostgresMajor, log: (line: string) => void): Promise<string> {
  const recipe = baseRecipe(major);
  const folder = cacheFolder("base");
  const output = join(folder, `postgresql-${major}-${process.arch}-${hashText(...recipe).slice(0, 12)}.tar`);
  if (existsSync(output)) return output;

  await ensureAptPackages(["mmdebstrap"], log);
  await mkdir(folder, { recursive: true });
  const mirror = await debianMirror();
  const unfinished = `${output}.${randomUUID()}`;
  const started = Date.now();
  log(`PostgreSQL ${major}: installing Debian ${suites[major]} into a root file system (1 to 2 minutes)`);
  try {
    await runCommand("mmdebstrap", [...recipe, unfinished, mirror], {
      env: { SOURCE_DATE_EPOCH: "1767225600", LC_ALL: "C.UTF-8" },
    });
    await rename(unfinished, output);
  } finally {
    await rm(unfinished, { force: true });
  }
  log(`PostgreSQL ${major}: root file system ready after ${Math.round((Date.now() - started) / 1000)} s`);
  return output;
}
