// Beside metrics.ts the only file of the kit that imports prom-client.
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Requests of one kind that a client has sent so far. */
export interface SentRequests {
  method: string;
  host: string;
  code: string;
  total: number;
}

/** Observer of the webhooks' server. */
export interface WebhookMetrics {
  /** A request came in; call the result with the HTTP status once it is answered. */
  began(path: string): (code: number, ms: number) => void;
}

/** Observer of certificates that are read again and again. */
export interface CertificateMetrics {
  read(outcome: "success" | "error"): void;
}

/** What a program with leader election, webhooks and a client tells besides its controllers, with controller-runtime's names. */
export interface ProgramMetrics {
  /** Tells what a client has sent, each time that metrics are read. */
  forRequests(list: () => readonly SentRequests[]): void;
  /** Tells whether this process leads. */
  forLeadership(lease: string): (leads: boolean) => void;
  forCertificates(): CertificateMetrics;
  /** Tells of each path from the start. */
  forWebhooks(paths: readonly string[]): WebhookMetrics;
}

/** Adds these metrics to a registry as they are asked for. */
export function programMetrics(registry: Registry): ProgramMetrics {
  const registers = [registry];
  return {
    forRequests(list) {
      const requests = new Counter({
        name: "rest_client_requests_total",
        help: "Requests to the API server by answer, method and host",
        labelNames: ["code", "host", "method"],
        registers,
        collect() {
          this.reset();
          for (const { total, ...labels } of list()) this.inc(labels, total);
        },
      });
      requests.reset();
    },
    forLeadership(lease) {
      const leads = new Gauge({
        name: "leader_election_master_status",
        help: "Whether this process leads by the Lease of that name",
        labelNames: ["name"],
        registers,
      });
      leads.set({ name: lease }, 0);
      return (does) => leads.set({ name: lease }, does ? 1 : 0);
    },
    forCertificates() {
      const reads = new Counter({
        name: "certwatcher_read_certificate_total",
        help: "Times a certificate that may change was read",
        registers,
      });
      const errors = new Counter({
        name: "certwatcher_read_certificate_errors_total",
        help: "Times a certificate that may change could not be read",
        registers,
      });
      return {
        read(outcome) {
          reads.inc();
          if (outcome === "error") errors.inc();
        },
      };
    },
    forWebhooks: (paths) => webhookMetrics(registers, paths),
  };
}

function webhookMetrics(registers: Registry[], paths: readonly string[]): WebhookMetrics {
  const total = new Counter({
    name: "controller_runtime_webhook_requests_total",
    help: "Admission requests by webhook and HTTP status",
    labelNames: ["webhook", "code"],
    registers,
  });
  const underWay = new Gauge({
    name: "controller_runtime_webhook_requests_in_flight",
    help: "Admission requests under way",
    labelNames: ["webhook"],
    registers,
  });
  const seconds = new Histogram({
    name: "controller_runtime_webhook_latency_seconds",
    help: "Time an admission request took",
    labelNames: ["webhook"],
    registers,
  });
  for (const webhook of paths) {
    underWay.set({ webhook }, 0);
    for (const code of ["200", "500"]) total.inc({ webhook, code }, 0);
  }
  return {
    began(webhook) {
      underWay.inc({ webhook });
      return (code, ms) => {
        underWay.dec({ webhook });
        total.inc({ webhook, code: String(code) });
        seconds.observe({ webhook }, ms / 1000);
      };
    },
  };
}
