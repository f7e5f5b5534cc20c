/** The object an event is about. */
export interface EventTarget {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
  resourceVersion?: string;
}

/** Records Kubernetes events; never fails and never blocks its caller. */
export interface EventSink {
  record(target: EventTarget, event: { type: "Normal" | "Warning"; reason: string; message: string }): void;
}
