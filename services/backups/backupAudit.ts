import { recordOf } from '../../db/core/recordAudit.ts';
import type { Backup } from '../../db/models/Backup.ts';
import type { EventData } from '../../domain/events/events.ts';

/** Notification topic: the archive of a deleted backup has been removed. */
export const archiveRemovedTopic = (backupId: string): string => `backup:${backupId}`;

type BackupEvent = 'backup.created' | 'backup.completed' | 'backup.failed' | 'backup.deleted';

const auditView = (backup: Backup) => ({
  mode: backup.mode,
  sections: backup.sections,
  engine: backup.engine,
  label: backup.label,
  retention: backup.retention,
  status: backup.status,
  store: backup.store,
  sizeBytes: backup.sizeBytes,
  rows: backup.rows,
  error: backup.error?.code ?? null,
});

const eventData = (backup: Backup): EventData<BackupEvent> => ({
  backupId: backup.id,
  mode: backup.mode,
  sections: backup.sections,
  engine: backup.engine,
  label: backup.label,
  status: backup.status,
  sizeBytes: backup.sizeBytes,
  rows: backup.rows,
  jobId: backup.jobId,
  error: backup.error?.code ?? null,
});

/** Audit entries and events about backups. */
export const backupRecord = recordOf<Backup, BackupEvent>({
  type: 'backup',
  auditView,
  events: { created: 'backup.created' },
  eventData,
});
