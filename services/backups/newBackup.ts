import type { Backup } from '../../db/models/Backup.ts';

/** The fields of a backup that are empty until it is made. */
export const EMPTY_BACKUP = {
  jobId: null,
  pending: null,
  sizeBytes: null,
  rows: null,
  manifest: null,
  schemaVersion: null,
  appVersion: null,
  snapshotAt: null,
  verifiedAt: null,
  restoreTestedAt: null,
  error: null,
  archiveError: null,
  finishedAt: null,
  deletedAt: null,
  version: 1,
} satisfies Partial<Backup>;
