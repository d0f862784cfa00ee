import { hash } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';

export type Lock = { release(): Promise<void> };

/** Another process uses the folder; `message` is its description of itself. */
export class FolderInUse extends Error {}

/**
 * The path of a socket is limited to about 100 bytes, so the name is a hash of the folder's path.
 * It is not in TMPDIR, which may differ between two shells.
 */
const socketPath = (folder: string) => {
  const name = `holdfast-${hash('sha256', folder, 'hex').slice(0, 16)}`;
  return os.platform() === 'win32' ? `\\\\.\\pipe\\${name}` : `/tmp/${name}.sock`;
};

/**
 * Locks `folder` by listening on a socket: the operating system releases the lock when the process
 * ends, and a second process reads from the socket what the first one is doing (`describe`).
 * Error: `FolderInUse`.
 */
export async function lockFolder(folder: string, describe: () => string): Promise<Lock> {
  const file = socketPath(folder);
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(describe());
  });
  server.unref();
  const listening = await listen(server, file);
  if (!listening) {
    const answer = await askOwner(file);
    if (answer !== undefined) throw new FolderInUse(answer);
    // No answer: the owner was killed.
    await rm(file, { force: true });
    if (!(await listen(server, file)))
      throw new FolderInUse('Another process has just locked the folder.');
  }
  if (os.platform() !== 'win32') await chmod(file, 0o600);
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

const listen = (server: net.Server, file: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error);
    server.once('error', failed);
    server.listen(file, () => {
      server.off('error', failed);
      resolve(true);
    });
  });

const askOwner = (file: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    let answer = '';
    const socket = net.connect(file);
    socket.setTimeout(3_000, () => socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.once('error', () => resolve(undefined));
    // An owner that is too busy to answer still holds the lock.
    socket.once(
      'close',
      (hadError) => !hadError && resolve(answer || 'Another process uses the folder.'),
    );
  });
