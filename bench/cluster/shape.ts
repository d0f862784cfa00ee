import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../../dev/freePort.ts';
import { ensureDatabase, startPostgres, type PostgresServer } from '../../dev/postgres.ts';
import { migrate } from '../fixture.ts';
import { startTemporalServer } from './temporalServer.ts';

/**
 * Starts the servers of an installation of many processes in a temporary folder: PostgreSQL and a Temporal server with all its services on it, as docker-compose.yml does, and
 * migrates the database. Builds the Temporal server once, which takes about ten minutes.
 */
export async function startShape(settings: Readonly<Record<string, string>>) {
  await using started = new AsyncDisposableStack();
  const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), 'holdfast-cluster-')));
  await chmod(folder, 0o711);
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const options = {
    dataDir: path.join(folder, 'postgres'),
    port: await freePort(0),
    logFile: path.join(folder, 'postgres.log'),
    settings: { ...settings },
  };
  let server: PostgresServer = await startPostgres(options);
  started.defer(() => server.stop());
  const temporal = await startTemporalServer(server, folder);
  started.defer(() => temporal.stop());
  await ensureDatabase(server, 'holdfast');
  const databaseUrl = server.url('holdfast');
  await migrate(databaseUrl);
  const resources = started.move();
  return {
    folder,
    databaseUrl,
    adminUrl: server.url('postgres'),
    temporalAddress: temporal.address,
    /** Each comes back at the same address, with its data. */
    postgres: {
      stop: () => server.stop(),
      start: async () => void (server = await startPostgres(options)),
    },
    temporal: { stop: temporal.stop, start: temporal.start },
    stop: () => resources.disposeAsync(),
  };
}
