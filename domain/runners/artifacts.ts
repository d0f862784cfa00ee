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

/** The names of their objects in a store begin with this. */
export const ARTIFACT_PREFIX = 'artifact-';
