import path from 'node:path';
import { prepareDataFolder } from '../../dev/dataFolder.ts';
import { freePort } from '../../dev/freePort.ts';
import { lockFolder } from '../../dev/lock.ts';
import { forgetServers, recordServers, stopOrphans } from '../../dev/orphanProcesses.ts';
import { ensureDatabase, startPostgres } from '../../dev/postgres.ts';
import { serverRecordFile } from '../../dev/stack.ts';

/** Starts the PostgreSQL of the embedded stack alone. Error: the stack of this folder is running. */
export async function startEmbeddedDatabase(
  dataDir: string,
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await prepareDataFolder(dataDir);
  const lock = await lockFolder(folder, () => `An archive is being restored into ${folder}.`);
  const recordFile = serverRecordFile(folder);
  await stopOrphans(recordFile, folder);
  const server = await startPostgres({
    dataDir: path.join(folder, 'postgres'),
    port: await freePort(5_433),
    logFile: path.join(folder, 'postgres.log'),
    onSpawn: (pid) => recordServers(recordFile, [{ name: 'PostgreSQL', pid, signal: 'SIGINT' }]),
  });
  await ensureDatabase(server, 'holdfast');
  return {
    url: server.url('holdfast'),
    async stop() {
      await server.stop();
      await forgetServers(recordFile);
      await lock.release();
    },
  };
}
