import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { spawn, type ChildProcess } from 'node:child_process';
import { ROOT } from '../fixture.ts';

/** Starts again when it ends, until it is stopped. */
export type KilledProcess = {
  kill(): boolean;
  signal(signal: NodeJS.Signals): boolean;
  stop(): Promise<void>;
};

/** Keeps a process of the product running; `kill` ends it as a power cut would. */
export function keepRunning(env: Readonly<Record<string, string>>): KilledProcess {
  let child: ChildProcess;
  let isStopping = false;
  let ended: Promise<void>;
  const start = () => {
    child = spawn(process.execPath, ['processes/main.ts'], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: path.join(os.tmpdir(), 'holdfast-compile-cache'),
        ...env,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    ended = new Promise((resolve) =>
      child.once('exit', () => {
        resolve();
        if (!isStopping) start();
      }),
    );
  };
  start();
  return {
    kill: () => child.kill('SIGKILL'),
    signal: (signal) => child.kill(signal),
    async stop() {
      isStopping = true;
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** A port that connects to one of `ports`: to the next one where nothing listens. */
export async function startBalancer(ports: readonly number[]) {
  let next = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((incoming) => {
    sockets.add(incoming);
    incoming.once('close', () => sockets.delete(incoming));
    incoming.on('error', () => undefined);
    const connect = (tries: number) => {
      const outgoing = net.connect(ports[next++ % ports.length] ?? 0, '127.0.0.1');
      outgoing.once('error', () =>
        tries < ports.length ? connect(tries + 1) : incoming.destroy(),
      );
      outgoing.once('connect', () => {
        incoming.pipe(outgoing).pipe(incoming);
        outgoing.once('close', () => incoming.destroy());
        incoming.once('close', () => outgoing.destroy());
      });
    };
    connect(1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
