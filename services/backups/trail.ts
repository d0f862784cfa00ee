import type { Backup } from '../../db/models/Backup.ts';
import type { EventData } from '../../domain/events/events.ts';

/** The topic on which the removal of an archive is told. */
export const removed = (backupId: string): string => `backup:${backupId}`;

/** A backup as the subject of audit entries and events. */
export const backupSubject = ({ id }: { id: string }) => ({ type: 'backup', id });

/** A backup as the audit trail keeps it. */
export const backupView = ({
  mode,
  sections,
  engine,
  label,
  keep,
  status,
  store,
  sizeBytes,
  rows,
  error,
}: Backup) => ({
  mode,
  sections,
  engine,
  label,
  keep,
  status,
  store,
  sizeBytes,
  rows,
  error: error?.code ?? null,
});

/** A backup as an event tells of it. */
export const backupEvent = ({
  id,
  mode,
  sections,
  engine,
  label,
  status,
  sizeBytes,
  rows,
  jobId,
  error,
}: Backup): EventData<'backup.created'> => ({
  backupId: id,
  mode,
  sections,
  engine,
  label,
  status,
  sizeBytes: sizeBytes ?? null,
  rows: rows ?? null,
  jobId: jobId ?? null,
  error: error?.code ?? null,
});
