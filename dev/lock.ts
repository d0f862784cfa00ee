import { createHash } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';

export type Lock = { release(): Promise<void> };

/** Somebody holds the folder already; `message` is what that process says of itself. */
export class FolderInUse extends Error {}

/**
 * A socket's path has little room, and a folder may lie deep; its real path's hash always fits. Not in TMPDIR, which
 * two shells may set differently.
 */
const socketPath = (folder: string) => {
  const name = `holdfast-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`;
  return os.platform() === 'win32' ? `\\\\.\\pipe\\${name}` : `/tmp/${name}.sock`;
};

/**
 * Holds `folder` for this process by listening on a socket: whoever dies lets go, and whoever comes second is
 * told by the first what is running. Error: `FolderInUse`.
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
    const answer = await ask(file);
    if (answer !== undefined) throw new FolderInUse(answer);
    // Nobody answers: its owner was killed.
    await rm(file, { force: true });
    if (!(await listen(server, file)))
      throw new FolderInUse('Another process took the folder just now.');
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

const ask = (file: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    let answer = '';
    const socket = net.connect(file);
    socket.setTimeout(3_000, () => socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.once('error', () => resolve(undefined));
    // One that holds the lock but is too busy to answer is still there.
    socket.once(
      'close',
      (hadError) => !hadError && resolve(answer || 'Another process uses the folder.'),
    );
  });
