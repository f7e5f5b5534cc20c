/** What can go wrong. Each class has to come up in the seeds of a run, or the run says nothing about it. */
export const faultClasses = [
  "a line between two instances is cut",
  "a line between an instance and the API server is cut",
  "a line between an instance and the operator is cut",
  "the line between the operator and the API server is cut",
  "a manager stands still",
  "a machine stands still, shorter than a lease allows for",
  "a machine stands still, longer than a lease allows for",
  "clocks run as differently as is assumed at most",
  "clocks run more differently than is assumed",
  "answers are lost or late",
  "PostgreSQL or its manager crashes",
  "a node crashes",
  "somebody reads what is old",
  "writes of status are lost",
  "the lease is deleted",
] as const;

export type FaultClass = (typeof faultClasses)[number];

/** The class of a line that is cut. */
export function lineClass(a: string, b: string): FaultClass {
  const ends = [a, b];
  if (ends.includes("op")) {
    return ends.includes("api")
      ? "the line between the operator and the API server is cut"
      : "a line between an instance and the operator is cut";
  }
  return ends.includes("api")
    ? "a line between an instance and the API server is cut"
    : "a line between two instances is cut";
}
