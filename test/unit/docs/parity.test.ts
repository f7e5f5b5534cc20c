import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Row {
  table: string;
  cells: string[];
}

const header = ["§", "area", "state", "what is missing", "shown by"];
const none = "–";

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** Rows of the tables of areas, with the heading that each stands under. */
function readRows(text: string): Row[] {
  const rows: Row[] = [];
  let table = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("## ")) table = line.slice(3);
    const cells = line.startsWith("|") && table !== "" ? cellsOf(line) : [];
    if (cells.length > 0 && !/^-+$/.test(cells[0] ?? "") && cells.join() !== header.join()) rows.push({ table, cells });
  }
  return rows;
}

const text = readFileSync("docs/parity.md", "utf8");
const rows = readRows(text);
const name = ({ table, cells }: Row) => `${table} ${cells[0]}`;
const proofs = ({ cells }: Row) => [...(cells[4] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

/** `count` sections below a number: 1.1, 1.2, … */
const below = (section: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${section}.${index + 1}`);

/** Sections that must have a row, by table. */
const sections: Record<string, string[]> = {
  "Cluster controller": [8, 11, 3, 4, 12, 9, 2, 4, 4].flatMap((count, index) => below(index + 1, count)),
  "Cluster controller: known weaknesses of the original": below(10, 35),
  "Cluster controller: checks from outside": below(11, 17),
  "Instance manager": [
    ...[3, 4, 7, 8, 8, 6, 3].flatMap((count, index) => below(index + 1, count)),
    ...["8", ...below(9, 6), ...below(10, 3), "11", "13"],
  ],
  "Instance manager: known weaknesses of the original": below(12, 36),
  "Instance manager: test list": below(14, 21),
  "Definitions and admission": below(11, 4),
  "Other declarative objects": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "13", "14", "15"],
  "Backup and recovery": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"],
  "Plugin interface": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
  "Field cases": [
    "C001",
    "C003",
    "C005",
    "C007",
    "C009",
    "C011",
    "C013",
    "C014",
    "C016",
    "C018",
    "C020",
    "C022",
    "C024",
    "C026",
    "C028",
    "C029",
    "C031",
    "C033",
    "C035",
    "C037",
    "C039",
    "C041",
    "C043",
    "C045",
    "C047",
    "C049",
    "C051",
    "C052",
    "C054",
    "C056",
    "C057",
    "C059",
    "C061",
    "C063",
    "C065",
    "C067",
    "C069",
    "C071",
    "C072",
    "C074",
    "C076",
    "C077",
    "C079",
    "C081",
    "C082",
    "C084",
    "C086",
    "C088",
    "C090",
    "C092",
    "C094",
    "C096",
    "C098",
    "C100",
    "C102",
    "C104",
    "C106",
    "C108",
  ],
};

describe("docs/parity.md", () => {
  it.each(Object.entries(sections))("has one row for each section of: %s", (table, expected) => {
    expect(rows.filter((row) => row.table === table).map(({ cells }) => cells[0])).toEqual(expected);
  });

  it("has tables of one shape", () => {
    expect(rows.length).toBeGreaterThan(250);
    expect(text.match(/^\| § .*$/gm)?.map(cellsOf)).toEqual([...text.matchAll(/^\| § /gm)].map(() => header));
    expect(rows.filter(({ cells }) => cells.length !== header.length || cells.includes("")).map(name)).toEqual([]);
  });

  it("knows three states", () => {
    expect(rows.filter(({ cells }) => !["done", "partial", "missing"].includes(cells[2] ?? "")).map(name)).toEqual([]);
  });

  it("names a test for all that is done, and what is missing where something is", () => {
    expect(rows.filter((row) => row.cells[2] === "done" && proofs(row).length === 0).map(name)).toEqual([]);
    expect(rows.filter(({ cells }) => cells[2] === "done" && cells[3] !== none).map(name)).toEqual([]);
    expect(rows.filter(({ cells }) => cells[2] === "partial" && cells[3] === none).map(name)).toEqual([]);
  });

  it("names tests that exist", () => {
    const named = [...new Set(rows.flatMap(proofs))];
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((path) => !/^test\/.+\.test\.ts$/.test(path) || !existsSync(path))).toEqual([]);
  });
});
