/**
 * The fault with the fewest runs; of several, one that the cluster at hand serves, else the first. A cluster is made anew only when
 * all that it serves has been made more often.
 */
export function chooseNext(
  names: readonly string[],
  made: readonly { readonly fault: string }[],
  served: (name: string) => boolean,
): string {
  const rank = (name: string) => made.filter(({ fault }) => fault === name).length + (served(name) ? 0 : 0.5);
  return names.reduce((best, name) => (rank(name) < rank(best) ? name : best));
}
