import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { table, type BenchResult } from './report.ts';

/**
 * `npm run bench [area…]`: runs benchmarks, prints tables and writes `bench/results/<area>.json`.
 */
const AREAS: Readonly<Record<string, () => Promise<{ bench(): Promise<BenchResult[]> }>>> = {
  access: () => import('./access.ts'),
  backups: () => import('./backups.ts'),
  chaos: () => import('./chaos.ts'),
  cluster: () => import('./cluster.ts'),
  console: () => import('./console.ts'),
  events: () => import('./events.ts'),
  fairness: () => import('./fairness.ts'),
  inventory: () => import('./inventory.ts'),
  jobs: () => import('./jobs.ts'),
  kills: () => import('./kills.ts'),
  profile: () => import('./profile.ts'),
  remote: () => import('./jobs/remote.ts'),
  retention: () => import('./retention.ts'),
  schedules: () => import('./schedules.ts'),
  search: () => import('./search.ts'),
  sizes: () => import('./sizes.ts'),
  soak: () => import('./soak.ts'),
  start: () => import('./start.ts'),
};

// No proxy watches the processes that are measured.
process.env.HOLDFAST_STOP_DELAY_MS ??= '0';

/** Areas that take long and run only when they are named. */
const ON_REQUEST: ReadonlySet<string> = new Set([
  'chaos',
  'cluster',
  'console',
  'kills',
  'profile',
  // A part of jobs.
  'remote',
  'retention',
  'search',
  'sizes',
  'soak',
]);

const requestedAreas = process.argv.slice(2);
const unknownAreas = requestedAreas.filter((area) => !(area in AREAS));
if (unknownAreas.length > 0) {
  process.stderr.write(
    `Unknown area ${unknownAreas.join(', ')}. The areas are ${Object.keys(AREAS).join(', ')}.\n`,
  );
  process.exit(2);
}
const folder = path.join(import.meta.dirname, 'results');
await mkdir(folder, { recursive: true });
for (const [area, load] of Object.entries(AREAS)) {
  const isWanted =
    requestedAreas.length > 0 ? requestedAreas.includes(area) : !ON_REQUEST.has(area);
  if (!isWanted) continue;
  const results = await (await load()).bench();
  await writeFile(path.join(folder, `${area}.json`), `${JSON.stringify(results, null, 2)}\n`);
  process.stdout.write(`\n${table(results)}\n`);
}
process.exit();
