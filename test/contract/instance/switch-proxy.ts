import { createConnection, createServer, type Server, type Socket } from "node:net";

/** Stands in for a Service: forwards connections to whichever port it points at now. */
export class SwitchProxy {
  readonly port: number;
  /** Port on this host; 0 refuses connections. */
  target = 0;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>, port: number) {
    this.#server = server;
    this.#sockets = sockets;
    this.port = port;
  }

  static start(): Promise<SwitchProxy> {
    const sockets = new Set<Socket>();
    return new Promise((resolve) => {
      const server = createServer((client) => {
        if (proxy.target === 0) {
          client.destroy();
          return;
        }
        const upstream = createConnection(proxy.target, "127.0.0.1");
        for (const socket of [client, upstream]) {
          sockets.add(socket);
          socket.on("error", () => socket.destroy());
          socket.on("close", () => {
            sockets.delete(socket);
            client.destroy();
            upstream.destroy();
          });
        }
        client.pipe(upstream).pipe(client);
      });
      let proxy: SwitchProxy;
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        proxy = new SwitchProxy(server, sockets, typeof address === "object" && address ? address.port : 0);
        resolve(proxy);
      });
    });
  }

  /** Leads nowhere and ends what is open. */
  cut(): void {
    this.target = 0;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): Promise<void> {
    this.cut();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
