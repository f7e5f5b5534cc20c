export type ExtensionAction = { kind: "create" | "drop"; name: string };

/** Extensions to be made and removed in one database, so that it has those that are used and no other managed one. */
export function planExtensions(view: {
  managed: readonly string[];
  used: readonly string[];
  installed: readonly string[];
}): ExtensionAction[] {
  return view.managed.flatMap((name): ExtensionAction[] => {
    const used = view.used.includes(name);
    if (used === view.installed.includes(name)) return [];
    return [{ kind: used ? "create" : "drop", name }];
  });
}
