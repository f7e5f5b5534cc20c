// The messages and services of proto/*.proto as TypeScript in src/rpc/gen, and those of the local volume driver in its own
// folder, by buf with the local protobuf-es plugin: no network, no remote plugin. Part of `npm run generate`.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Folders of .proto files, and where their code goes. */
const modules = [
  { source: "proto", target: "src/rpc/gen" },
  { source: "local/csi/proto", target: "local/csi/gen" },
];

type Module = (typeof modules)[number];

/** A generated file that was, or is, not as it should be; `path` counts from the project's root. */
export interface ProtoDrift {
  readonly path: string;
  readonly problem: "missing" | "out of date" | "left over";
}

/** Generates the code of the protocol, or with `check` only compares; answers with what differed. */
export async function generateProto(options: { check: boolean }): Promise<readonly ProtoDrift[]> {
  const drift = await Promise.all(modules.map((each) => generateModule(each, options)));
  return drift.flat();
}

async function generateModule(each: Module, options: { check: boolean }): Promise<readonly ProtoDrift[]> {
  const outputs = await renderProto(each);
  const drift = await findProtoDrift(each, outputs);
  if (options.check) return drift;
  await mkdir(join(root, each.target), { recursive: true });
  for (const { path, problem } of drift) {
    if (problem === "left over") await rm(join(root, path));
    else await writeFile(join(root, path), outputs.get(path) ?? "");
  }
  return drift;
}

async function renderProto({ source, target }: Module): Promise<ReadonlyMap<string, string>> {
  const proto = join(root, source);
  const buf = join(root, "node_modules", ".bin", "buf");
  const folder = await mkdtemp(join(tmpdir(), "proto-"));
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` };
  try {
    await run(buf, ["lint"], { cwd: proto, env });
    await run(buf, ["generate", "--output", folder], { cwd: proto, env });
    const names = (await readdir(folder)).sort();
    return new Map(
      await Promise.all(
        names.map(async (name): Promise<[string, string]> => {
          return [`${target}/${name}`, await readFile(join(folder, name), "utf8")];
        }),
      ),
    );
  } catch (error) {
    const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
    const explanation = [stdout, stderr].filter(Boolean).join("\n") || message;
    throw new Error(`proto: buf failed; correct the .proto file it names:\n${explanation}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function findProtoDrift({ target }: Module, outputs: ReadonlyMap<string, string>): Promise<ProtoDrift[]> {
  const existing = await list(join(root, target));
  const drift: ProtoDrift[] = [];
  for (const [path, content] of outputs) {
    if (!existing.includes(path.slice(target.length + 1))) drift.push({ path, problem: "missing" });
    else if ((await readFile(join(root, path), "utf8")) !== content) drift.push({ path, problem: "out of date" });
  }
  const leftOver = existing.map((name) => `${target}/${name}`).filter((path) => !outputs.has(path));
  return [...drift, ...leftOver.map((path): ProtoDrift => ({ path, problem: "left over" }))];
}

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
