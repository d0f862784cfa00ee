import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { MAX_RESULT_BYTES } from '../../domain/jobs/jobs.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import { compileForeignSchema } from '../../platform/foreignSchema.ts';
import type { SchemaCheck } from '../../platform/schemaCheck.ts';
import { parseStrictJson } from '../../platform/strictJson.ts';

const invalid = (message: string) =>
  new JobFailure('invalid_result', message, { retryable: false });

const checks = new WeakMap<object, SchemaCheck>();

/** The check of a schema, which is compiled once. */
function checkOf(schema: object): SchemaCheck {
  const check = checks.get(schema) ?? compileForeignSchema(schema);
  checks.set(schema, check);
  return check;
}

/** The text of the file; undefined if there is none. At most one byte too many is read. */
async function readText(file: string): Promise<string | undefined> {
  let handle;
  try {
    // A link or a pipe in its position is not followed and not waited for.
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw invalid('The result is not a regular file that can be read');
  }
  try {
    const { size, isFile } = await handle.stat().then((stats) => ({
      size: stats.size,
      isFile: stats.isFile(),
    }));
    if (!isFile) throw invalid('The result is not a regular file');
    if (size > MAX_RESULT_BYTES)
      throw new JobFailure(
        'result_too_large',
        `The result has ${size} bytes; at most ${MAX_RESULT_BYTES} are allowed`,
        { retryable: false },
      );
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/**
 * Reads and checks the result that a command has written; `{}` if it has written none. Errors:
 * `JobFailure` with `invalid_result` or `result_too_large`.
 */
export async function readResult(
  file: string,
  schema: object | undefined,
): Promise<Record<string, unknown>> {
  const text = await readText(file);
  const { value, errors } =
    text === undefined || text.trim() === '' ? { value: {}, errors: [] } : parseStrictJson(text);
  const [broken] = errors;
  if (broken)
    throw invalid(['The result', broken.pointer, broken.message].filter(Boolean).join(' '));
  if (!isJsonObject(value)) throw invalid('The result is not a JSON object');
  const problems = schema ? checkOf(schema)(value) : [];
  if (problems.length > 0)
    throw invalid(
      `The result does not match the schema of the type: ${problems
        .slice(0, 5)
        .map(({ pointer, message }) => `${pointer || 'it'} ${message}`)
        .join('; ')}`,
    );
  return value;
}
