import type { JobType } from '../../domain/jobType.ts';
import { DELIVER } from '../../domain/webhooks/webhooks.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';
import type { JobEnding } from '../jobEnds.ts';
import { backupCreate, type BackupTypeDeps } from './backups/create.ts';
import { archiveTypes, type RestoreTypeDeps } from './backupRestore.ts';
import { coreEcho } from './core/echo.ts';
import { coreSleep } from './core/sleep.ts';
import { httpRequest } from './http/request.ts';
import { deliveryEnding, webhookDeliver, type DeliverDeps } from './webhookDeliver.ts';
import { inventoryApply, type ApplyDeps } from './inventoryApply.ts';
import { inventoryImport, type ImportDeps } from './inventoryImport.ts';
import { scheduleBackfill, type BackfillDeps } from './scheduleBackfill.ts';
import { webhookReplay, type ReplayDeps } from './webhooks/replay.ts';

type Deps = DeliverDeps &
  ReplayDeps &
  BackfillDeps &
  ImportDeps &
  ApplyDeps &
  BackupTypeDeps &
  RestoreTypeDeps & { http: GuardedHttp };

/** Every job type. A new one is a file beside these and a line here. */
export const allJobTypes = (deps: Deps): JobType[] => [
  coreEcho,
  coreSleep,
  httpRequest(deps.http),
  webhookDeliver(deps),
  webhookReplay(deps),
  scheduleBackfill(deps),
  inventoryImport(deps),
  inventoryApply(deps),
  backupCreate(deps),
  ...archiveTypes(deps),
];

/** What else ends with a job, by its type. */
export const jobEndings: Readonly<Record<string, JobEnding>> = { [DELIVER]: deliveryEnding };
