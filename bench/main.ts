import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { table, type Result } from './report.ts';

/** `npm run bench [area]`: measures, prints a table and writes `bench/results/<area>.json`. */
const AREAS: Readonly<Record<string, () => Promise<{ bench(): Promise<Result[]> }>>> = {
  access: () => import('./access.ts'),
  backups: () => import('./backups.ts'),
  events: () => import('./events.ts'),
  inventory: () => import('./inventory.ts'),
  jobs: () => import('./jobs.ts'),
  schedules: () => import('./schedules.ts'),
  start: () => import('./start.ts'),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((area) => !(area in AREAS));
if (unknown.length > 0) {
  process.stderr.write(
    `Unknown area ${unknown.join(', ')}; there are ${Object.keys(AREAS).join(', ')}.\n`,
  );
  process.exit(2);
}
const folder = path.join(import.meta.dirname, 'results');
await mkdir(folder, { recursive: true });
for (const [area, load] of Object.entries(AREAS)) {
  if (wanted.length > 0 && !wanted.includes(area)) continue;
  const results = await (await load()).bench();
  await writeFile(path.join(folder, `${area}.json`), `${JSON.stringify(results, null, 2)}\n`);
  process.stdout.write(`\n${table(results)}\n`);
}
process.exit(0);
