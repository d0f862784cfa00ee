import { DAY_MS } from '../shared/durations.ts';
export const ARCHIVE_JOB = 'audit.archive';

/** Entries stay in the database for this time, unless the job says otherwise. */
export const DEFAULT_ARCHIVE_DAYS = 400;
export const MAX_ARCHIVE_DAYS = 36_500;

/** The largest number of entries in one archive. */
export const MAX_ARCHIVED_ENTRIES = 100_000;

/** An archive of a part of a tenant's audit chain. */
export type AuditArchiveData = {
  id: string;
  tenantId: string;
  jobId: string;
  /** `writing`: not proven yet. `checkpointed`: entries are being deleted. */
  status: 'writing' | 'checkpointed' | 'completed';
  firstPosition: number;
  position: number;
  /** The hash of the entry before the first one. */
  previousHash: Buffer;
  /** The hash of the last entry. */
  hash: Buffer;
  firstAt: Date;
  lastAt: Date;
  store: 'folder' | 's3';
  /** The name of the archive in the store. */
  archive: string;
  sizeBytes: number | null;
  checkpointAt: Date | null;
  createdAt: Date;
};

/**
 * Until when entries are archived: the start of the month (UTC) in which they are `days` old, so that
 * archives have whole months.
 */
export function archiveCutoff(now: Date, days: number): Date {
  const oldest = new Date(now.getTime() - days * DAY_MS);
  return new Date(Date.UTC(oldest.getUTCFullYear(), oldest.getUTCMonth(), 1));
}
