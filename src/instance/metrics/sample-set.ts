/** Kinds of the text format that we write. */
export type MetricType = "counter" | "gauge" | "histogram" | "untyped";

export type Labels = Readonly<Record<string, string>>;

export interface MetricFamily {
  name: string;
  help: string;
  type: MetricType;
}

/** Why a sample was not taken. */
export type Refusal = "duplicate" | "inconsistent" | "invalidName";

interface StoredFamily extends MetricFamily {
  /** Text of the samples by their label text. */
  samples: Map<string, string>;
}

/** Bounds with counts up to them, as a histogram is written. */
export interface HistogramValue {
  buckets: readonly { upTo: number; count: number }[];
  sum: number;
  count: number;
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * Samples of one scrape. What would make the whole answer invalid (a series twice, a name with two types) is refused one by
 * one, so that a single bad query never costs the other metrics.
 */
export class SampleSet {
  readonly #families = new Map<string, StoredFamily>();

  /** Takes a sample; tells why when it does not. */
  add(family: MetricFamily, labels: Labels, value: number): Refusal | undefined {
    return this.#store(family, labels, (text) => `${family.name}${text} ${formatValue(value)}\n`);
  }

  /** Takes a histogram; tells why when it does not. */
  addHistogram(family: MetricFamily, labels: Labels, value: HistogramValue): Refusal | undefined {
    const line = (suffix: string, extra: Labels, number: number) =>
      `${family.name}${suffix}${formatLabels({ ...labels, ...extra })} ${formatValue(number)}\n`;
    return this.#store(family, labels, () => {
      const buckets = value.buckets
        .filter(({ upTo }) => upTo !== Number.POSITIVE_INFINITY)
        .map(({ upTo, count }) => line("_bucket", { le: formatValue(upTo) }, count));
      const total = line("_bucket", { le: "+Inf" }, value.count);
      return [...buckets, total, line("_sum", {}, value.sum), line("_count", {}, value.count)].join("");
    });
  }

  /** Takes over all samples of another set; calls back for each that was refused. */
  merge(other: SampleSet, onRefused: (name: string, refusal: Refusal) => void): void {
    for (const family of other.#families.values()) {
      for (const [labels, text] of family.samples) {
        const refusal = this.#insert(family, labels, text);
        if (refusal) onRefused(family.name, refusal);
      }
    }
  }

  /** The text format, families and series sorted. */
  render(): string {
    const parts: string[] = [];
    for (const name of [...this.#families.keys()].sort()) {
      const family = this.#families.get(name);
      if (!family) continue;
      parts.push(`# HELP ${name} ${escapeHelp(family.help)}\n# TYPE ${name} ${family.type}\n`);
      for (const labels of [...family.samples.keys()].sort()) parts.push(family.samples.get(labels) ?? "");
    }
    return parts.join("");
  }

  #store(family: MetricFamily, labels: Labels, render: (labels: string) => string): Refusal | undefined {
    if (!metricName.test(family.name) || !Object.keys(labels).every((name) => labelName.test(name))) {
      return "invalidName";
    }
    const text = formatLabels(labels);
    return this.#insert(family, text, render(text));
  }

  #insert(family: MetricFamily, labels: string, text: string): Refusal | undefined {
    let stored = this.#families.get(family.name);
    if (!stored) {
      stored = { name: family.name, help: family.help, type: family.type, samples: new Map() };
      this.#families.set(family.name, stored);
    }
    if (stored.type !== family.type) return "inconsistent";
    if (stored.samples.has(labels)) return "duplicate";
    stored.samples.set(labels, text);
    return undefined;
  }
}

function formatLabels(labels: Labels): string {
  const names = Object.keys(labels).sort();
  if (names.length === 0) return "";
  return `{${names.map((name) => `${name}="${escapeLabel(labels[name] ?? "")}"`).join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));
}

function escapeHelp(text: string): string {
  return text.replace(/[\\\n]/g, (char) => (char === "\n" ? "\\n" : "\\\\"));
}

/** A number of the text format, as exporters in Go write it: from a million on, and below 0.0001, with an exponent. */
export function formatValue(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  const magnitude = Math.abs(value);
  if (!(magnitude >= 1e6 || (magnitude > 0 && magnitude < 1e-4))) return String(value);
  const [mantissa = "", exponent = ""] = value.toExponential().split("e");
  return `${mantissa}e${exponent.charAt(0)}${exponent.slice(1).padStart(2, "0")}`;
}
