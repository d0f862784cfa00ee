import type { JobType } from '../../domain/jobs/jobType.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';
import { auditArchive, type AuditArchiveDeps } from './audit/archive.ts';
import { backupCreate, type BackupTypeDeps } from './backups/create.ts';
import { restoreJobTypes, type RestoreTypeDeps } from './backups/restore.ts';
import { coreEcho } from './core/echo.ts';
import { coreSleep } from './core/sleep.ts';
import { httpRequest } from './http/request.ts';
import { createDeliverJobType, type DeliverDeps } from './webhooks/deliver.ts';
import { inventoryApply, type InventoryApplyDeps } from './inventory/apply.ts';
import { inventoryImport, type ImportDeps } from './inventory/import.ts';
import { scheduleBackfill, type BackfillDeps } from './schedules/backfill.ts';
import { retentionPurge, type PurgeDeps } from './retention/purge.ts';
import { createReplayJobType, type ReplayDeps } from './webhooks/replay.ts';

type Deps = DeliverDeps &
  ReplayDeps &
  BackfillDeps &
  ImportDeps &
  InventoryApplyDeps &
  BackupTypeDeps &
  RestoreTypeDeps &
  AuditArchiveDeps &
  PurgeDeps & { http: GuardedHttp };

/** All job types. To add one, add a file beside these and a line here. */
export const allJobTypes = (deps: Deps): JobType[] => [
  coreEcho,
  coreSleep,
  httpRequest(deps.http),
  createDeliverJobType(deps),
  createReplayJobType(deps),
  scheduleBackfill(deps),
  inventoryImport(deps),
  inventoryApply(deps),
  backupCreate(deps),
  ...restoreJobTypes(deps),
  auditArchive(deps),
  retentionPurge(deps),
];
