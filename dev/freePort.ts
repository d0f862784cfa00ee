import { createServer, type AddressInfo } from 'node:net';

const HOST = '127.0.0.1';

const tryPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(undefined));
    probe.listen(port, HOST, () => {
      const address = probe.address() as AddressInfo;
      probe.close(() => resolve(address.port));
    });
  });

/** Returns `preferred` if it is free, else any free port; 0 means any. */
export async function freePort(preferred: number): Promise<number> {
  const port = (await tryPort(preferred)) ?? (await tryPort(0));
  if (port === undefined) throw new Error('No free port on this machine');
  return port;
}
