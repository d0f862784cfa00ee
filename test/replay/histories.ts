import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';

const FOLDER = path.join(import.meta.dirname, 'histories');

export type Recorded = { file: string; branch: string; history: unknown };

/** Every history that was ever recorded. Old ones stay: runs that began on old code end on new code. */
export async function recordedHistories(): Promise<Recorded[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.json')).sort();
  return Promise.all(
    files.map(async (file) => ({
      file,
      branch: file.split('.').slice(0, -2).join('.'),
      history: JSON.parse(await readFile(path.join(FOLDER, file), 'utf8')) as unknown,
    })),
  );
}

/** Records a run as `<branch>.<shape>.json`; one with the same sequence of events as before adds nothing. */
export async function record(branch: string, handle: WorkflowHandle): Promise<string> {
  const history = await handle.fetchHistory();
  const shape = createHash('sha256')
    .update(JSON.stringify(history.events?.map((event) => event.eventType)))
    .digest('hex')
    .slice(0, 8);
  const file = `${branch}.${shape}.json`;
  await mkdir(FOLDER, { recursive: true });
  const known = (await readdir(FOLDER)).includes(file);
  if (!known) await writeFile(path.join(FOLDER, file), `${scrub(historyToJSON(history))}\n`);
  return file;
}

/** Who recorded it, and on which machine and where, is nobody's business. */
const scrub = (json: string): string =>
  json
    .replaceAll(/("identity":\s*)"[^"]*"/g, '$1"recorder"')
    .replaceAll(/("stackTrace":\s*)"(?:[^"\\]|\\.)*"/g, '$1""');
