/** Proxies by the scheme of what is asked for, and the hosts that are reached without, as Node's agents take them. */
export interface StoreProxy {
  HTTP_PROXY?: string;
  HTTPS_PROXY?: string;
  NO_PROXY?: string;
}

const names = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] as const;

/** The proxy that an environment names, as Barman's tools would use it; `undefined` when it names none. */
export function readProxy(environment: Readonly<Record<string, string | undefined>>): StoreProxy | undefined {
  const proxy: StoreProxy = {};
  for (const name of names) {
    // The small letters are the older custom, and count first.
    const value = environment[name.toLowerCase()] || environment[name];
    if (value) proxy[name] = value.includes("://") || name === "NO_PROXY" ? value : `http://${value}`;
  }
  return proxy.HTTP_PROXY || proxy.HTTPS_PROXY ? proxy : undefined;
}
