import { useLiveRefresh, type LiveEvent } from '../../app/live.ts';
import { usePolling } from '../../app/usePolling.ts';

const IDLE_MS = 60_000;
const BUSY_MS = 3_000;

const TYPES = ['backup.*', 'restore.*', 'job.succeeded', 'job.failed', 'job.cancelled'];

/** Backups have events, and so have the jobs that load their archives. */
const concernsBackups = ({ type, data }: LiveEvent): boolean => {
  if (!type.startsWith('job.')) return true;
  const { type: jobType } = data as { type?: unknown };
  return typeof jobType === 'string' && jobType.startsWith('backup.');
};

/** Keeps queries about backups up to date. That a queued backup has started is no event. */
export function useBackupsLive(queryKey: readonly unknown[], isBusy: boolean): void {
  useLiveRefresh(TYPES, queryKey, concernsBackups);
  usePolling(queryKey, isBusy ? BUSY_MS : IDLE_MS);
}
