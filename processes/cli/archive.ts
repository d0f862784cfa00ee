import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import { openDatabase, type Knex } from '../../db/core/knex.ts';
import { migrateUp } from '../../db/core/migrate.ts';
import { readArchive, readHeader, type ArchiveHeader } from '../../platform/archive/index.ts';
import { readArchiveConfig, readCommandConfig, readDatabaseConfig } from '../../platform/config.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { createFolderStore } from '../../platform/stores/folder.ts';
import { createS3Store } from '../../platform/stores/lazyS3.ts';
import { StoreError, type ArchiveStore } from '../../platform/stores/store.ts';
import { createVault } from '../../platform/vault.ts';
import { entryOf, readSegment } from '../../services/audit/segmentFile.ts';
import { unsealWith } from '../../services/backups/archives.ts';
import { registerArchives, importArchive } from '../../services/backups/importArchive.ts';
import { withEmbeddedStack } from './embeddedStack.ts';
import { commandLine, print, readArguments, runProgram, UsageError } from './program.ts';
import { counted } from '../../domain/shared/counted.ts';

const dataDir = path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast');

/** The environment, with the master key and the backup folder of the embedded stack as defaults. */
async function environment(): Promise<Record<string, string | undefined>> {
  const key = await readFile(path.join(dataDir, 'master.key'), 'utf8').catch(() => undefined);
  const usesS3 = process.env.HOLDFAST_BACKUP_S3_BUCKET !== undefined;
  return {
    ...(key !== undefined && { HOLDFAST_MASTER_KEYS: key.trim() }),
    ...(!usesS3 && { HOLDFAST_BACKUP_DIR: path.join(dataDir, 'backups') }),
    ...process.env,
  };
}

async function readSettings() {
  const env = await environment();
  const config = readArchiveConfig(env);
  return { env, config, unseal: unsealWith(createVault(config.masterKeys)) };
}

let read: ReturnType<typeof readSettings> | undefined;

/** Read when a command needs them: the usage needs none. */
const settings = () => (read ??= readSettings());

async function store(): Promise<ArchiveStore> {
  const { config } = await settings();
  const { store: kind, folder, s3 } = config.backups;
  if (kind === 's3' && s3) return createS3Store(s3, config.outboundAllow);
  if (folder === undefined)
    throw new Error(
      'No store is configured: set HOLDFAST_BACKUP_DIR or HOLDFAST_BACKUP_S3_BUCKET.',
    );
  return createFolderStore(folder);
}

/** Reads a file, or an archive in the store. */
const bytesOf = async (name: string): Promise<AsyncIterable<Uint8Array>> =>
  existsSync(name)
    ? ((await open(name)).createReadStream() as AsyncIterable<Buffer>)
    : (await store()).read(name);

const partsOf = async (name: string) => readArchive(await bytesOf(name), (await settings()).unseal);

/** The header of an archive; undefined if it has none that can be read. `onStoreError`: the store did not deliver it. */
const headerOf = (
  from: ArchiveStore,
  name: string,
  onStoreError: (error: StoreError) => void = () => undefined,
): Promise<ArchiveHeader | undefined> =>
  readHeader(from.read(name)).catch((error: unknown) => {
    if (error instanceof StoreError) onStoreError(error);
    return undefined;
  });

async function list(): Promise<number> {
  const from = await store();
  for await (const { name, sizeBytes } of from.list()) {
    const header = await headerOf(from, name);
    if (header) {
      const { createdAt, tenantId, mode, sections } = header;
      print([name, createdAt, tenantId, mode, `${sizeBytes} bytes`, sections.join(',')].join('  '));
    } else {
      print(`${name}  ${sizeBytes} bytes  cannot be read`);
    }
  }
  return 0;
}

/** Verifies an archive and prints its contents. */
async function show(name: string): Promise<number> {
  for await (const part of await partsOf(name)) {
    if (part.kind === 'header') {
      const { key, tables, ...header } = part.header;
      print(JSON.stringify({ ...header, masterKey: key.id }, null, 2));
    } else if (part.kind === 'manifest') {
      for (const { section, name: table, rows, sha256 } of part.manifest.tables)
        print(`${section}  ${table}  ${counted(rows, 'row')}  ${sha256}`);
      print(
        `${counted(part.manifest.rows, 'row')} in ${counted(part.manifest.frames, 'frame')}: the archive is complete.`,
      );
    }
  }
  return 0;
}

/** Prints the rows of a table in the format of the archive. */
async function rows(name: string, table: string): Promise<number> {
  let index = -1;
  for await (const part of await partsOf(name)) {
    if (part.kind === 'header') {
      const names = part.header.tables.map((each) => each.name);
      index = names.indexOf(table);
      if (index === -1)
        throw new Error(`The archive has no table ${table}; it has ${names.join(', ')}.`);
      process.stderr.write(`${part.header.tables[index]?.columns.join('\t') ?? ''}\n`);
    } else if (part.kind === 'rows' && part.table === index && !process.stdout.write(part.bytes))
      await once(process.stdout, 'drain');
  }
  return 0;
}

/** Verifies a part of the audit log and prints its entries, one JSON object a line. */
async function audit(name: string): Promise<number> {
  for await (const entry of readSegment(await partsOf(name)))
    if (!process.stdout.write(`${JSON.stringify(entryOf(entry))}\n`))
      await once(process.stdout, 'drain');
  return 0;
}

/**
 * The database at DATABASE_URL, or that of the embedded stack, which is started for the restore.
 */
async function database(): Promise<{ url: string; stop(): Promise<void> }> {
  if (process.env.DATABASE_URL)
    return { url: process.env.DATABASE_URL, stop: () => Promise.resolve() };
  const { startEmbeddedDatabase } = await withEmbeddedStack(() => import('./embeddedDatabase.ts'));
  return startEmbeddedDatabase(dataDir);
}

type Target = { db: Knex; url: string; log: Log };

/** Runs something with the database. */
async function withTarget(use: (target: Target) => Promise<void>): Promise<void> {
  const { url, stop } = await database();
  try {
    const { logLevel } = readDatabaseConfig({ ...process.env, DATABASE_URL: url });
    const log = createLog(logLevel);
    const db = openDatabase({ url, poolSize: 3, statementTimeoutMs: 0, log });
    try {
      await use({ db, url, log });
    } finally {
      await db.destroy();
    }
  } finally {
    await stop();
  }
}

/** Registers the archives in the store that the database does not know. Error: the store did not deliver some of them. */
async function registerIn({ url, log }: Target): Promise<void> {
  const from = await store();
  // Loaded late: only this command needs it, and variables of processes must not stop a restore.
  const { compose } = await import('../composition/index.ts');
  const { requireSchema } = await import('./requireSchema.ts');
  const { env } = await settings();
  const deps = compose(readCommandConfig({ ...env, DATABASE_URL: url }), log);
  try {
    await requireSchema(deps.db);
    const unread: string[] = [];
    const registered = await registerArchives(deps, from, ({ name }) =>
      headerOf(from, name, (error) => unread.push(`${name}: ${error.message}`)),
    );
    print(`Registered ${counted(registered, 'archive')} in the store.`);
    if (unread.length > 0)
      throw new Error(
        `${counted(unread.length, 'archive')} could not be read:\n${unread.join('\n')}\n`,
      );
  } finally {
    await deps.stop();
  }
}

async function register(): Promise<number> {
  await withTarget(registerIn);
  return 0;
}

async function restore(name: string): Promise<number> {
  const { config } = await settings();
  await withTarget(async (target) => {
    await migrateUp(target.db);
    await restoreInto(target.db, target.url, name);
    print('Jobs that had not ended are failed. Schedules continue with their next occurrence.');
    if (config.backups.store === undefined) return;
    await registerIn(target).catch((error: unknown) => {
      process.stderr.write(
        `Warning: the restore is complete, but the archives in the store are not registered: ${errorMessage(error)} ` +
          `Run \`${commandLine('archive', 'register')}\` when the store can be used.\n`,
      );
    });
  });
  return 0;
}

async function restoreInto(db: Knex, databaseUrl: string, name: string): Promise<void> {
  const startedAt = performance.now();
  const { header, manifest } = await importArchive({ db, databaseUrl }, await partsOf(name));
  if (header.mode !== 'full')
    print(
      `The archive contains only ${[...header.sections, ...header.includes].join(', ')}. ` +
        'To restore another archive, start with an empty database again.',
    );
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  print(`Restored ${counted(manifest.rows, 'row')} of ${header.createdAt} in ${seconds} s.`);
}

const COMMANDS: Readonly<
  Record<string, { usage: string; args: number; run(...args: string[]): Promise<number> }>
> = {
  list: { usage: 'list: lists the archives in the store', args: 0, run: list },
  show: {
    usage: 'show <archive>: verifies an archive and prints its contents',
    args: 1,
    run: show,
  },
  rows: {
    usage: 'rows <archive> <table>: prints the rows of a table, and its columns on standard error',
    args: 2,
    run: rows,
  },
  audit: {
    usage: 'audit <archive>: verifies an archive of the audit log and prints its entries as NDJSON',
    args: 1,
    run: audit,
  },
  restore: {
    usage:
      'restore <archive>: restores into an empty database (DATABASE_URL, or the embedded stack)',
    args: 1,
    run: restore,
  },
  register: {
    usage: 'register: registers the archives in the store that the database does not know',
    args: 0,
    run: register,
  },
};

const USAGE = `An archive is a file or a name in the store. Commands:
${Object.values(COMMANDS)
  .map(({ usage }) => `  ${usage}`)
  .join('\n')}`;

async function main(args: readonly string[]): Promise<number> {
  const [name = '', ...names] = readArguments(args, { words: 3 }).words;
  const command = COMMANDS[name];
  if (command?.args !== names.length)
    throw new UsageError('A command and its arguments are needed');
  return command.run(...names);
}

await runProgram(() => USAGE, main);
