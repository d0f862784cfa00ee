import { addAbortSignal, Readable } from 'node:stream';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { ARTIFACT_NAME } from '../../../domain/runners/artifacts.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import type { JobTools, StoredArtifact } from './jobType.ts';

/** Stores a file of an attempt. Error: `AppError`; those of `source`. */
type StoreFile = (file: { name: string; source: Readable }) => Promise<StoredArtifact>;

const NAME = new RegExp(ARTIFACT_NAME);

const refused = (code: string, message: string): JobFailure =>
  new JobFailure(code, message, { retryable: false });

/** The files of a module: they have names and contents that can be stored, and end with its attempt. */
export const createArtifactTool =
  (store: StoreFile, signal: AbortSignal): JobTools['artifact'] =>
  async (name: unknown, content: unknown) => {
    if (typeof name !== 'string' || !NAME.test(name))
      throw refused(
        'invalid_artifact',
        'The name of a file has 1 to 128 letters, digits, dots, hyphens and underscores, a letter or digit first',
      );
    signal.throwIfAborted();
    const source = addAbortSignal(
      signal,
      Readable.from(chunksOf(name, content), { objectMode: false }),
    );
    try {
      const { bytes, sha256 } = await store({ name, source });
      return { name, bytes, sha256 };
    } catch (error) {
      signal.throwIfAborted();
      throw toFailure(error);
    } finally {
      source.destroy();
    }
  };

/** The content as bytes. Error: `JobFailure('invalid_artifact')` for what is neither text nor bytes. */
async function* chunksOf(name: string, content: unknown): AsyncGenerator<Buffer> {
  const isWhole = typeof content === 'string' || content instanceof Uint8Array;
  const isStream =
    typeof content === 'object' && content !== null && Symbol.asyncIterator in content;
  const parts = isStream && !isWhole ? (content as AsyncIterable<unknown>) : [content];
  for await (const part of parts) {
    if (typeof part !== 'string' && !(part instanceof Uint8Array))
      throw refused('invalid_artifact', `The content of ${name} is neither text nor bytes`);
    if (part.length > 0) yield Buffer.from(part as Uint8Array);
  }
}

function toFailure(error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const { code, message } = error;
  if (code === 'limit_reached') return refused(code, message);
  if (code === 'attempt_lost') return refused('attempt_superseded', message);
  return new JobFailure('artifact_not_stored', message, { retryable: code === 'unavailable' });
}
