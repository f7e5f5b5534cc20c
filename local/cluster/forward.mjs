// Hands connections to a loopback port of the machine on to a server inside the cluster's namespaces.
// It runs inside, with a listening socket that was opened outside, so nothing outside has to keep running.
// Plain JavaScript: it stays up as long as the cluster, and must be small.
import { connect } from "node:net";

const [host, port] = process.argv.slice(2);

process.once("message", (_message, server) => {
  server.on("connection", (client) => {
    const target = connect({ host, port: Number(port) });
    // Either end closing or failing closes the other; there is nobody to tell.
    client.on("error", () => target.destroy());
    target.on("error", () => client.destroy());
    client.on("close", () => target.destroy());
    target.on("close", () => client.destroy());
    client.pipe(target).pipe(client);
  });
  process.send("listening");
});
