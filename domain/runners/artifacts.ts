import { AppError } from '../shared/errors.ts';

/** A file that an attempt of a job has left. */
export type ArtifactData = {
  name: string;
  attempt: number;
  bytes: number;
  /** SHA-256 of the content, in hexadecimal digits. */
  sha256: string;
  createdAt: Date;
};

/** The form of the name of an artifact. */
export const ARTIFACT_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';

/** Most artifacts of one job, and most bytes of all of them. */
export const MAX_ARTIFACTS = 20;
export const MAX_ARTIFACT_BYTES = 64 * 1_048_576;

/** In which time an artifact must arrive at the API: the largest one with 150 kbit/s. */
export const MAX_ARTIFACT_SECONDS = 3_600;

/** The names of their objects in a store begin with this. */
export const ARTIFACT_PREFIX = 'artifact-';

/** Error: `limit_reached`, if an artifact of `bytes` beside the others would be one or some bytes too many. */
export function checkArtifactLimits(
  others: readonly Pick<ArtifactData, 'bytes'>[],
  bytes: number,
): void {
  const total = others.reduce((sum, each) => sum + each.bytes, bytes);
  if (others.length >= MAX_ARTIFACTS || total > MAX_ARTIFACT_BYTES)
    throw new AppError(
      'limit_reached',
      `A job has at most ${MAX_ARTIFACTS} artifacts of ${MAX_ARTIFACT_BYTES} bytes together.`,
    );
}
