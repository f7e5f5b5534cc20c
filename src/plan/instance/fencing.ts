export type FencingAction = "fence" | "unfence" | "none";

/** Compares the annotation with what the instance does. */
export function planFencing(view: { annotated: boolean; fenced: boolean }): FencingAction {
  if (view.annotated === view.fenced) return "none";
  return view.annotated ? "fence" : "unfence";
}
