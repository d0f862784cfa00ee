import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import type { Declaration } from '../declaration/schema.ts';
import type { Attempt } from './attempt.ts';
import type { RunFolder } from './runFolder.ts';

/** Larger files are no secrets that could be masked. */
const MAX_SECRET_BYTES = 65_536;

/** Reads a secret of the runner's folder, without the line feed at its end; undefined if there is none. */
export async function readSecret(
  folder: string | undefined,
  name: string,
): Promise<string | undefined> {
  if (folder === undefined) return undefined;
  const file = path.join(folder, name);
  try {
    const { size } = await stat(file);
    if (size > MAX_SECRET_BYTES) return undefined;
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
  } catch {
    return undefined;
  }
}

/** The names of the secrets that a declaration asks for. */
export const secretNames = ({ run }: Declaration): string[] =>
  Object.values(run.secrets ?? {}).map((use) => ('env' in use ? use.env : use.file));

/**
 * The variables of the secrets that a declaration asks for, of Holdfast and of the runner, and their values.
 * Those that are used as a file are written to the folder of the run. Error: `JobFailure('secret_missing')`.
 */
export async function prepareSecrets(
  declaration: Declaration,
  attempt: Attempt,
  run: RunFolder,
  secretsFolder: string | undefined,
): Promise<{ variables: Record<string, string>; values: string[] }> {
  const variables: Record<string, string> = { ...attempt.secrets };
  const values = Object.values(attempt.secrets);
  for (const [variable, use] of Object.entries(declaration.run.secrets ?? {})) {
    const name = 'env' in use ? use.env : use.file;
    const value = await readSecret(secretsFolder, name);
    if (value === undefined)
      throw new JobFailure('secret_missing', `The runner has no secret ${name}`, {
        retryable: false,
      });
    values.push(value);
    if ('env' in use) variables[variable] = value;
    else {
      const file = path.join(run.secrets, name);
      await writeFile(file, value, { mode: 0o600 });
      variables[variable] = file;
    }
  }
  return { variables, values };
}
