import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { freePort } from './freePort.ts';
import { endLeftovers, forgetParts, noteParts, type Part } from './orphanProcesses.ts';
import { ensureDatabase, startPostgres } from './postgres.ts';
import type { Say } from './say.ts';
import { startTemporal } from './temporal.ts';
import { temporalBinary } from './temporalBinary.ts';

export type Stack = {
  databaseUrl: string;
  temporalAddress: string;
  /** Where Temporal's Web UI is, when it is ours. */
  temporalUi: string | undefined;
  /** Resolves when one of the servers has ended by itself, with what to say about it. */
  broken: Promise<string>;
  stop(): Promise<void>;
};

type Settings = { folder: string; env: NodeJS.ProcessEnv; say: Say };

/** Where the process ids of a folder's servers are noted. */
export const notesIn = (folder: string): string => path.join(folder, 'servers.json');

const PORTS = { postgres: 5_433, temporal: 7_233, temporalUi: 8_233 };

/** Makes the folder and gives its real path; the PostgreSQL account must be able to pass through it. */
export async function dataFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 });
  return realpath(folder);
}

/** Starts what the environment does not name: PostgreSQL and Temporal on this machine, side by side. */
export async function startStack({ folder, env, say }: Settings): Promise<Stack> {
  const notes = notesIn(folder);
  const ended = await endLeftovers(notes, folder);
  if (ended.length > 0)
    say.line(`Ended what a killed start had left running: ${ended.join(', ')}.`);

  const parts: Part[] = [];
  const note = (part: Part) => {
    parts.push(part);
    return noteParts(notes, parts);
  };
  const results = await Promise.allSettled([
    postgresPart(folder, env, note),
    temporalPart(folder, env, say, note),
  ]);
  const stop = async () => {
    // Temporal first: nothing asks PostgreSQL any more by then.
    for (const result of results.toReversed())
      if (result.status === 'fulfilled') await result.value.stop();
    await forgetParts(notes);
  };
  const [postgres, temporal] = results;
  if (postgres.status === 'rejected' || temporal.status === 'rejected') {
    await stop();
    throw results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    )[0];
  }
  return {
    databaseUrl: postgres.value.url,
    temporalAddress: temporal.value.address,
    temporalUi: temporal.value.ui,
    broken: Promise.race([postgres.value.ended, temporal.value.ended]),
    stop,
  };
}

type NotePart = (part: Part) => Promise<void>;

const forEver = new Promise<never>(() => undefined);

async function postgresPart(folder: string, env: NodeJS.ProcessEnv, note: NotePart) {
  const given = env.DATABASE_URL;
  if (given) return { url: given, ended: forEver, stop: () => Promise.resolve() };
  const server = await startPostgres({
    dataDir: path.join(folder, 'postgres'),
    port: await freePort(PORTS.postgres),
    logFile: path.join(folder, 'postgres.log'),
    onSpawn: (pid) => note({ name: 'PostgreSQL', pid, signal: 'SIGINT' }),
  });
  await ensureDatabase(server, 'holdfast');
  const ended = server.child.ended.then(
    (how) => `PostgreSQL ${how}; its log is ${path.join(folder, 'postgres.log')}`,
  );
  return { url: server.url('holdfast'), ended, stop: server.stop };
}

async function temporalPart(folder: string, env: NodeJS.ProcessEnv, say: Say, note: NotePart) {
  const given = env.TEMPORAL_ADDRESS;
  if (given)
    return { address: given, ui: undefined, ended: forEver, stop: () => Promise.resolve() };
  const binary = await temporalBinary(say);
  const logFile = path.join(folder, 'temporal.log');
  const start = async () =>
    startTemporal({
      binary,
      logFile,
      dbFile: path.join(folder, 'temporal.db'),
      port: await freePort(PORTS.temporal),
      uiPort: await freePort(PORTS.temporalUi),
      onSpawn: (pid) => note({ name: 'Temporal', pid, signal: 'SIGTERM' }),
    });
  // It takes ports beside those that it is given, and any may be lost to somebody else meanwhile: once more with others.
  const server = await start().catch(start);
  const ended = server.child.ended.then((how) => `Temporal ${how}; its log is ${logFile}`);
  return {
    address: server.address,
    ui: `http://127.0.0.1:${server.uiPort}`,
    ended,
    stop: server.stop,
  };
}
