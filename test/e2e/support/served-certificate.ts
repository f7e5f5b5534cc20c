import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** SHA-256 fingerprint of the certificate that a TLS server on the loopback address shows. */
export async function servedCertificate(port: number, protocol: "tls" | "postgres"): Promise<string> {
  const socket = protocol === "postgres" ? await startPostgresTls(port) : undefined;
  return await new Promise((resolve, reject) => {
    const tls = connectTls(
      // Only which certificate is shown matters here; whether it is trusted is another test's question.
      { ...(socket ? { socket } : { host: "127.0.0.1", port }), rejectUnauthorized: false, minVersion: "TLSv1.3" },
      () => {
        resolve(tls.getPeerCertificate().fingerprint256);
        tls.destroy();
      },
    );
    tls.on("error", reject);
  });
}

/** Opens a PostgreSQL connection up to the point where TLS begins. */
function startPostgresTls(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectPlain({ host: "127.0.0.1", port }, () => {
      // SSLRequest: length 8, code 80877103.
      socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
    });
    socket.once("data", (answer) => {
      if (answer.toString() === "S") resolve(socket);
      else reject(new Error(`PostgreSQL answered the TLS request with ${JSON.stringify(answer.toString())}`));
    });
    socket.on("error", reject);
  });
}
