import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { descendantsCpuMs, familyMemory, familyPss } from '../memory.ts';

/** What is sampled: memory in MiB, and counts. */
export const SAMPLED = [
  'memory of Holdfast',
  'memory of PostgreSQL',
  'memory of Temporal',
  'connections',
  'open files of Holdfast',
  'a fixed computation',
] as const;
export type Sample = Record<(typeof SAMPLED)[number], number> & {
  /** Processor time of all servers so far, in milliseconds. */
  cpuMs: number;
};

const STEPS = 2_000_000;

/** Milliseconds of processor time of a fixed computation: how fast the machine is at the moment. */
function fixedComputationMs(): number {
  const before = process.cpuUsage();
  let sum = 0;
  for (let n = 0; n < STEPS; n++) sum += n % 7;
  const { user, system } = process.cpuUsage(before);
  return sum > 0 ? (user + system) / 1_000 : Number.NaN;
}

/** Samples the servers, which are children of this process, and the product. */
export async function takeSample(client: pg.Client, productPid: number): Promise<Sample> {
  const computationMs = fixedComputationMs();
  const [all, cpuMs, product, files, connections] = await Promise.all([
    familyMemory(process.pid),
    descendantsCpuMs(process.pid),
    familyPss(productPid),
    readdir(`/proc/${productPid}/fd`),
    client.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    ),
  ]);
  const memoryOf = (executable: string) =>
    [...all].find(([name]) => name.startsWith(executable))?.[1] ?? Number.NaN;
  return {
    'memory of Holdfast': product,
    'memory of PostgreSQL': memoryOf('postgres'),
    'memory of Temporal': memoryOf('temporal'),
    connections: connections.rows[0]?.count ?? Number.NaN,
    'open files of Holdfast': files.length,
    'a fixed computation': computationMs,
    cpuMs,
  };
}

/** MiB of the write-ahead log, of the records with their indexes, and of Temporal's file. */
export async function diskUse(
  client: pg.Client,
  folder: string,
): Promise<Record<'wal' | 'records' | 'temporal', number>> {
  const { rows } = await client.query<{ wal: number; records: number }>(
    `SELECT (SELECT sum(size) FROM pg_ls_waldir())::float8 AS wal,
            pg_database_size(current_database())::float8 AS records`,
  );
  const files = (await readdir(folder)).filter((name) => name.startsWith('temporal.db'));
  const sizes = await Promise.all(files.map((name) => stat(path.join(folder, name))));
  const mib = (bytes: number) => bytes / 2 ** 20;
  return {
    wal: mib(rows[0]?.wal ?? Number.NaN),
    records: mib(rows[0]?.records ?? Number.NaN),
    temporal: mib(sizes.reduce((sum, { size }) => sum + size, 0)),
  };
}
