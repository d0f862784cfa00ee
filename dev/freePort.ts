import { createServer, type AddressInfo } from 'node:net';

const HOST = '127.0.0.1';

const tryPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(undefined));
    probe.listen(port, HOST, () => {
      const { port: got } = probe.address() as AddressInfo;
      probe.close(() => resolve(got));
    });
  });

/** `wanted` when nobody listens there, else a free port. */
export async function freePort(wanted: number): Promise<number> {
  const port = (await tryPort(wanted)) ?? (await tryPort(0));
  if (port === undefined) throw new Error('No free port on this machine');
  return port;
}
