import { answer, api, type Schemas } from '../../app/api.ts';
import type { paths } from '../../app/schema.d.ts';
import { toQuery, type ListPart, type ListSearch } from '../../parts/list/search.ts';
import { BACKUP_FILTERS, RUN_FILTERS } from './backupFilters.ts';
import { isEnded } from './backupText.ts';

export type Backup = Schemas['Backup'];
export type BackupSummary = Schemas['BackupSummary'];
export type BackupSetup = Pick<Schemas['BackupList'], 'sections' | 'engines' | 'storage'>;
export type SectionInfo = Schemas['BackupSectionInfo'];
export type SectionName = Schemas['BackupSection'];
export type RestoreRun = Schemas['RestoreRun'];
export type RestoreRunSummary = Schemas['RestoreRunSummary'];

type BackupsQuery = NonNullable<paths['/api/backup']['get']['parameters']['query']>;
type RunsQuery = NonNullable<paths['/api/backup/{backupId}/runs']['get']['parameters']['query']>;

type Reading = { signal: AbortSignal };

const NAMES = 'labels,people';
/** How often the progress of what runs is read. */
const PROGRESS_MS = 1_500;

export const LIST_KEY = ['backups', 'list'];

/** The key of everything about a backup. */
export const backupKey = (id: string) => ['backups', 'of', id] as const;

/** A part of the list of backups, with names instead of ids. */
export async function readBackups(
  search: ListSearch,
  now: Date,
  part: ListPart,
  signal: AbortSignal,
) {
  const query = { ...toQuery<BackupsQuery>(BACKUP_FILTERS, search, now, part), include: NAMES };
  const { backups, ...page } = await answer(api.GET('/api/backup', { params: { query }, signal }));
  return { ...page, items: backups };
}

/** Sections, engines, and where backups are stored. They change with the configuration of the server. */
export const setupQuery = {
  queryKey: ['backups', 'setup'],
  queryFn: async ({ signal }: Reading): Promise<BackupSetup> => {
    const query = { limit: 1 };
    const { sections, engines, storage } = await answer(
      api.GET('/api/backup', { params: { query }, signal }),
    );
    return { sections, engines, storage };
  },
  staleTime: 30_000,
};

/** A backup with the names of what it refers to. */
export const backupQuery = (id: string) => ({
  queryKey: [...backupKey(id), 'record'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/backup/{backupId}', {
        params: { path: { backupId: id }, query: { include: NAMES } },
        signal,
      }),
    ),
});

/** A part of the list of what was done with the archive of a backup. */
export const readRuns = (
  backupId: string,
  search: ListSearch,
  now: Date,
  part: ListPart,
  signal: AbortSignal,
) => {
  const query = { ...toQuery<RunsQuery>(RUN_FILTERS, search, now, part), include: NAMES };
  return answer(
    api.GET('/api/backup/{backupId}/runs', { params: { path: { backupId }, query }, signal }),
  );
};

/** A preview, a test restore or a restore. While it runs, it is read again and again. */
export const runQuery = (backupId: string, jobId: string) => ({
  queryKey: [...backupKey(backupId), 'run', jobId],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/backup/{backupId}/runs/{jobId}', {
        params: { path: { backupId, jobId }, query: { include: NAMES } },
        signal,
      }),
    ),
  refetchInterval: ({ state }: { state: { data?: RestoreRun | undefined } }) =>
    state.data && isEnded(state.data.status) ? (false as const) : PROGRESS_MS,
});

/** How far the job of a backup is. */
export const jobProgressQuery = (jobId: string) => ({
  queryKey: ['backups', 'job', jobId],
  queryFn: async ({ signal }: Reading) => {
    const { status, progress } = await answer(
      api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal }),
    );
    return { status, progress };
  },
  refetchInterval: PROGRESS_MS,
});

/** The job types of schedules that make or test backups. */
export const BACKUP_TYPES = ['backup.create', 'backup.verify'] as const;
const SHOWN_SCHEDULES = 20;

/** The schedules that make and test backups. */
export const schedulesQuery = {
  queryKey: ['backups', 'schedules'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/schedules', {
        params: { query: { jobType: [...BACKUP_TYPES], sort: 'name', limit: SHOWN_SCHEDULES } },
        signal,
      }),
    ),
};
