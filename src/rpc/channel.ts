import { createSecureContext } from "node:tls";
import { type ChannelCredentials, type ChannelOptions, Client, credentials } from "@grpc/grpc-js";
import type { PluginEndpoint, TlsEndpoint } from "./endpoint.ts";

/** Keepalive of TCP channels: Go servers close the connection of a client that pings more often than each five minutes. */
const keepaliveMs = 330_000;

/** A lazy channel to the plugin; its owner closes it. Throws when the certificate and key do not go together. */
export function openChannel(endpoint: PluginEndpoint): Client {
  if (endpoint.kind === "socket") {
    return new Client(`unix://${endpoint.path}`, credentials.createInsecure(), commonOptions());
  }
  return new Client(`dns:${endpoint.address}`, tlsCredentials(endpoint), {
    ...commonOptions(),
    "grpc.ssl_target_name_override": endpoint.serverName,
    "grpc.default_authority": endpoint.serverName,
    "grpc.keepalive_time_ms": keepaliveMs,
    "grpc.keepalive_timeout_ms": 20_000,
  });
}

function commonOptions(): ChannelOptions {
  return {
    // A proxy of the environment must never see these calls: they stay in the cluster.
    "grpc.enable_http_proxy": 0,
    // The caller decides about repetition; WAL and backup calls must not run twice behind its back.
    "grpc.enable_retries": 0,
    // The library's default waits up to two minutes, which a plugin's restart would cost every reconciliation.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 5_000,
    // A shared pool would keep the socket after close, for the next channel with equal options.
    "grpc.use_local_subchannel_pool": 1,
    // TXT records for service configuration are no business of a plugin.
    "grpc.service_config_disable_resolution": 1,
  };
}

/** A context of its own per channel, so that renewed certificates are used by the next channel and by no older one. */
function tlsCredentials(endpoint: TlsEndpoint): ChannelCredentials {
  return credentials.createFromSecureContext(
    createSecureContext({
      minVersion: "TLSv1.3",
      ca: endpoint.serverRoots,
      cert: endpoint.clientCertificate,
      key: endpoint.clientKey,
      // The roots hold the peer's own certificate, whoever issued it; Go trusts such a leaf too.
      allowPartialTrustChain: true,
    }),
  );
}
