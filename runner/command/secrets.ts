import { isUtf8 } from 'node:buffer';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import type { Declaration } from '../declaration/schema.ts';
import type { Attempt } from './attempt.ts';
import type { RunFolder } from './runFolder.ts';

/** Larger files are no secrets that could be masked. */
const MAX_SECRET_BYTES = 65_536;

type SecretUse = { env: string } | { file: string };

/** `bytes` is the whole file, `value` its text without the line feed at its end. */
type Secret = { bytes: Buffer; value: string };

/** Faults of the machine, which say nothing about the file. */
const OF_MACHINE = new Set(['EAGAIN', 'EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'ESTALE', 'ETIMEDOUT']);

/** Reads a file of the runner's secrets folder; undefined if there is none, or it is too large. Errors: `OF_MACHINE`. */
async function readBytes(folder: string | undefined, name: string): Promise<Buffer | undefined> {
  if (folder === undefined) return undefined;
  const file = path.join(folder, name);
  try {
    const { size } = await stat(file);
    return size > MAX_SECRET_BYTES ? undefined : await readFile(file);
  } catch (error) {
    if (OF_MACHINE.has(String((error as NodeJS.ErrnoException).code))) throw error;
    return undefined;
  }
}

/** Reads a secret for its use; `problem` says why it cannot be used so. Errors: `OF_MACHINE`. */
export async function readSecret(
  folder: string | undefined,
  use: SecretUse,
): Promise<Secret | { problem: string }> {
  const name = 'env' in use ? use.env : use.file;
  const bytes = await readBytes(folder, name);
  if (!bytes) return { problem: `The secrets folder of the runner has no readable file ${name}` };
  if ('env' in use && (!isUtf8(bytes) || bytes.includes(0)))
    return { problem: `The secret ${name} of the runner is no text in UTF-8: use it as a file` };
  // Bytes that are not UTF-8 are masked as the log would show them.
  return { bytes, value: bytes.toString().replace(/\r?\n$/, '') };
}

/** The secrets that a declaration asks for, by variable. */
export const secretUses = ({ run }: Declaration): [variable: string, use: SecretUse][] =>
  Object.entries(run.secrets ?? {});

/**
 * The variables of the secrets that a declaration asks for, of Holdfast and of the runner, and their values.
 * Those that are used as a file are written to the folder of the run, byte for byte. Error: `JobFailure('secret_missing')`.
 */
export async function prepareSecrets(
  declaration: Declaration,
  attempt: Attempt,
  run: RunFolder,
  secretsFolder: string | undefined,
): Promise<{ variables: Record<string, string>; values: string[] }> {
  const variables: Record<string, string> = { ...attempt.secrets };
  const values = Object.values(attempt.secrets);
  for (const [variable, use] of secretUses(declaration)) {
    const secret = await readSecret(secretsFolder, use);
    if ('problem' in secret)
      throw new JobFailure('secret_missing', secret.problem, { retryable: false });
    values.push(secret.value);
    if ('env' in use) variables[variable] = secret.value;
    else {
      const file = path.join(run.secrets, use.file);
      await writeFile(file, secret.bytes, { mode: 0o600 });
      variables[variable] = file;
    }
  }
  return { variables, values };
}
