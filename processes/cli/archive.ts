import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { compose } from '../../composition.ts';
import { openDatabase } from '../../db/core/knex.ts';
import { migrateUp } from '../../db/core/migrate.ts';
import { freePort } from '../../dev/freePort.ts';
import { lockFolder } from '../../dev/lock.ts';
import { ensureDatabase, startPostgres } from '../../dev/postgres.ts';
import { dataFolder } from '../../dev/stack.ts';
import { readArchive, readHeader, type ArchiveHeader } from '../../platform/archive/index.ts';
import { readArchiveConfig, readConfig } from '../../platform/config.ts';
import { createLog } from '../../platform/log.ts';
import { createFolderStore } from '../../platform/stores/folder.ts';
import { createS3Store } from '../../platform/stores/s3.ts';
import type { ArchiveStore } from '../../platform/stores/store.ts';
import { createVault } from '../../platform/vault.ts';
import { unsealWith } from '../../services/backups/archives.ts';
import { adopt, restoreOnto } from '../../services/backups/restoreOnto.ts';

const USAGE = 2;
const say = (text: string) => void process.stdout.write(`${text}\n`);

const dataDir = path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast');

/** What the embedded stack would use, where nothing else is said: its key, if it has one, and its folder of backups. */
async function environment(): Promise<Record<string, string | undefined>> {
  const key = await readFile(path.join(dataDir, 'master.key'), 'utf8').catch(() => undefined);
  const elsewhere = process.env.HOLDFAST_BACKUP_S3_BUCKET !== undefined;
  return {
    ...(key !== undefined && { HOLDFAST_MASTER_KEYS: key.trim() }),
    ...(!elsewhere && { HOLDFAST_BACKUP_DIR: path.join(dataDir, 'backups') }),
    ...process.env,
  };
}

const env = await environment();
const config = readArchiveConfig(env);
const unseal = unsealWith(createVault(config.masterKeys));

function store(): ArchiveStore {
  const { store: kind, folder, s3 } = config.backups;
  if (kind === 's3' && s3) return createS3Store(s3, config.outboundAllow);
  if (folder === undefined)
    throw new Error(
      'There is no store: set HOLDFAST_BACKUP_DIR or HOLDFAST_BACKUP_S3_BUCKET, or name a file.',
    );
  return createFolderStore(folder);
}

/** The bytes of an archive: a file, or a name in the store. */
const bytesOf = (name: string): AsyncIterable<Uint8Array> =>
  existsSync(name) ? (createReadStream(name) as AsyncIterable<Buffer>) : store().read(name);

const headerOf = (name: string): Promise<ArchiveHeader | undefined> =>
  readHeader(store().read(name)).catch(() => undefined);

async function list(): Promise<number> {
  for await (const { name, sizeBytes } of store().list()) {
    const header = await headerOf(name);
    say(
      header
        ? `${name}  ${header.createdAt}  ${header.tenantId}  ${header.mode}  ${sizeBytes} bytes  ${header.sections.join(',')}`
        : `${name}  ${sizeBytes} bytes  cannot be read`,
    );
  }
  return 0;
}

/** Reads all of an archive, so that what is printed is known to be whole. */
async function show(name: string): Promise<number> {
  for await (const part of readArchive(bytesOf(name), unseal)) {
    if (part.kind === 'header') {
      const { key, tables: _, ...header } = part.header;
      say(JSON.stringify({ ...header, masterKey: key.id }, null, 2));
    } else if (part.kind === 'manifest') {
      for (const { section, name: table, rows, sha256 } of part.manifest.tables)
        say(`${section}  ${table}  ${rows} rows  ${sha256}`);
      say(`${part.manifest.rows} rows in ${part.manifest.frames} frames: the archive is whole.`);
    }
  }
  return 0;
}

/** Prints the rows of a table as they lie in the archive. */
async function rows(name: string, table: string): Promise<number> {
  let index = -1;
  for await (const part of readArchive(bytesOf(name), unseal)) {
    if (part.kind === 'header') {
      index = part.header.tables.findIndex((each) => each.name === table);
      if (index === -1)
        throw new Error(
          `The archive has no table ${table}; it has ${part.header.tables.map((each) => each.name).join(', ')}.`,
        );
      process.stderr.write(`${part.header.tables[index]?.columns.join('\t') ?? ''}\n`);
    } else if (part.kind === 'rows' && part.table === index && !process.stdout.write(part.bytes))
      await once(process.stdout, 'drain');
  }
  return 0;
}

/** The database to restore onto: the one that is named, or that of the embedded stack, started for this alone. */
async function database(): Promise<{ url: string; stop(): Promise<void> }> {
  if (process.env.DATABASE_URL)
    return { url: process.env.DATABASE_URL, stop: () => Promise.resolve() };
  const folder = await dataFolder(dataDir);
  const lock = await lockFolder(folder, () => `An archive is being restored onto ${folder}.`);
  const server = await startPostgres({
    dataDir: path.join(folder, 'postgres'),
    port: await freePort(5_433),
    logFile: path.join(folder, 'postgres.log'),
  });
  await ensureDatabase(server, 'holdfast');
  return {
    url: server.url('holdfast'),
    async stop() {
      await server.stop();
      await lock.release();
    },
  };
}

async function restore(name: string): Promise<number> {
  const { url, stop } = await database();
  try {
    const settings = readConfig({ ...env, DATABASE_URL: url });
    const log = createLog(settings.logLevel);
    const db = openDatabase({ url, poolSize: 3, statementTimeoutMs: 0, log });
    const deps = compose(settings, log);
    try {
      await migrateUp(db);
      const began = performance.now();
      const { header, manifest } = await restoreOnto(
        { db, databaseUrl: url },
        readArchive(bytesOf(name), unseal),
      );
      if (header.mode !== 'full')
        say(
          `The archive is a part: it has ${[...header.sections, ...header.includes].join(', ')} and nothing else. To restore another one, begin with an empty database again.`,
        );
      say(
        `${manifest.rows} rows of ${header.createdAt} are restored, in ${((performance.now() - began) / 1_000).toFixed(1)} s.`,
      );
      const adopted =
        config.backups.store === undefined
          ? 0
          : await adopt(deps, store(), (archive) => headerOf(archive.name));
      say(`${adopted} archives of the store have records again.`);
      say('Jobs that had not ended came back as failed. Schedules are due from now on.');
      return 0;
    } finally {
      await deps.stop();
      await db.destroy();
    }
  } finally {
    await stop();
  }
}

const COMMANDS: Readonly<
  Record<string, { about: string; args: number; run(...args: string[]): Promise<number> }>
> = {
  list: { about: 'list: the archives of the store', args: 0, run: list },
  show: {
    about: 'show <archive>: reads all of an archive, checks it, and says what is in it',
    args: 1,
    run: show,
  },
  rows: {
    about: 'rows <archive> <table>: prints the rows of a table; its columns go to standard error',
    args: 2,
    run: rows,
  },
  restore: {
    about: 'restore <archive>: onto an empty database, DATABASE_URL or that of the embedded stack',
    args: 1,
    run: restore,
  },
};

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const command = COMMANDS[name];
  if (command?.args === args.length) return command.run(...args);
  process.stderr.write(
    `An archive is a file, or a name in the store. Commands:\n${Object.values(COMMANDS)
      .map(({ about }) => `  ${about}`)
      .join('\n')}\n`,
  );
  return USAGE;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`Failed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
