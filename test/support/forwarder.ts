import { once } from 'node:events';
import {
  connect,
  createServer,
  type AddressInfo,
  type NetConnectOpts,
  type Socket,
} from 'node:net';

/** A way to a server that can be closed, as if the server were away. */
export type Forwarder = {
  /** Where it listens, as `host:port`. */
  address: string;
  /** Breaks all connections, and refuses others until it is opened. */
  close(): Promise<void>;
  open(): Promise<void>;
  /** Forwards nothing on the connections that there are, as if the machine of the server were lost. New ones work. */
  freeze(): void;
};

/** Where a server listens: `host:port`, or `folder:port` for the socket of PostgreSQL in a folder. */
const targetOf = ({ hostname, port }: URL): NetConnectOpts => {
  const host = decodeURIComponent(hostname);
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port: Number(port) };
};

/** Starts a forwarder to the server of an address such as `tcp://127.0.0.1:7233`. */
export async function startForwarder(address: URL): Promise<Forwarder> {
  const target = targetOf(address);
  const sockets = new Set<Socket>();
  const pairs = new Set<() => void>();
  const server = createServer((incoming) => {
    const outgoing = connect(target);
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        incoming.destroy();
        outgoing.destroy();
      });
    }
    incoming.pipe(outgoing).pipe(incoming);
    pairs.add(() => {
      incoming.unpipe(outgoing);
      outgoing.unpipe(incoming);
    });
  });
  let listenPort = 0;
  const open = async () => {
    server.listen(listenPort, '127.0.0.1');
    await once(server, 'listening');
    listenPort = (server.address() as AddressInfo).port;
  };
  await open();
  return {
    address: `127.0.0.1:${listenPort}`,
    open,
    freeze() {
      for (const unpipe of pairs) unpipe();
      pairs.clear();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
