import type { RecordEncoder } from "./record-encoder.ts";

/** Where finished log lines go; a promise asks the producer to wait. */
export type WriteLine = (line: string, stream: "stdout" | "stderr") => Promise<void> | undefined;

/** Turns each line of a child program into a record; fits `RunOptions.onLine`. */
export function createChildLogger(
  command: string,
  encode: RecordEncoder,
  write: WriteLine,
): (pipe: "stdout" | "stderr", line: string) => void {
  return (pipe, line) => {
    // Child programs of ours write little; their pipes are not held back.
    void write(encode(command, line, { pipe }), "stderr");
  };
}

/** Puts the whole output of a short program into one record per pipe. */
export function logChildOutput(
  command: string,
  output: { stdout: string; stderr: string },
  encode: RecordEncoder,
  write: WriteLine,
): void {
  for (const pipe of ["stdout", "stderr"] as const) {
    if (output[pipe] !== "") void write(encode(command, output[pipe], { pipe }), "stderr");
  }
}
