import { Type } from 'typebox';
import type { Permission } from '../../domain/access/permissions.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Access } from '../../services/access/access.ts';
import type { Backups } from '../../services/backups/backups.ts';
import type { RestoreHistory } from '../../services/backups/restoreHistory.ts';
import type { Restores, RestoreView } from '../../services/backups/restores.ts';
import { expectedVersion } from '../http/etag.ts';
import { accepted, created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { Id } from '../http/schemas.ts';
import {
  backupRecord,
  backupSummary,
  engineRecords,
  mayReadAt,
  restoreRecord,
  sectionRecords,
  storageRecord,
  validationRecord,
} from './presenter.ts';
import { restoreRunRoutes } from './runRoutes.ts';
import {
  BackupList,
  BACKUPS,
  BackupQuery,
  BackupRecord,
  BackupRequest,
  RestoreBody,
  RestoreRecord,
  ValidateRequest,
  ValidationRecord,
} from './schemas.ts';

const tag = 'Backups';
const OneBackup = Type.Object({ backupId: Id('bkp') }, { additionalProperties: false });
const EXAMPLE_ID = 'bkp_01k8qzj3m5x7c9v1b3n5m7q9w1';

/** How long a validation or restore waits for its report; many proxies time out after a minute. */
const REPORT_WAIT_MS = 50_000;

type Deps = { backups: Backups; restores: Restores; history: RestoreHistory; access: Access };

/** Creating, reading, validating, restoring and deleting backups, and what was done with them. */
export function backupRoutes({ backups, restores, history, access }: Deps): Route[] {
  async function readBackup(
    caller: Caller,
    id: string,
    actedWith?: Permission,
  ): Promise<BackupRecord> {
    const found = await backups.read(caller, id, actedWith);
    return backupRecord(found, mayReadAt(access, caller, found.backup.tenantId));
  }

  async function createdResponse(
    caller: Caller,
    id: string,
    advice: { warnings?: Warning[] } = {},
  ): Promise<HttpResponse> {
    const body = await readBackup(caller, id, 'backup:write');
    return created(`/api/backup/${id}`, { ...body, ...advice });
  }

  function validationResponse(caller: Caller, view: RestoreView): HttpResponse {
    const body = validationRecord(view, mayReadAt(access, caller, view.run.tenantId));
    if (isFinal(view.job.status)) return ok(body);
    return accepted(`/api/jobs/${view.job.id}`, body);
  }

  /** Errors: `restore_stale`, `restore_invalid` with the report. */
  function restoreResponse(caller: Caller, view: RestoreView): HttpResponse {
    const body = restoreRecord(view, mayReadAt(access, caller, view.run.tenantId));
    const { code, message } = body.error ?? { code: null, message: '' };
    if (code === 'restore_stale')
      throw new AppError('restore_stale', `${message}; validate again.`);
    if (code === 'restore_invalid') {
      const { valid, errors, warnings, preview, planHash } = body;
      const report = { valid, errors, warnings, preview, planHash };
      throw new AppError('restore_invalid', message, { report });
    }
    return accepted(`/api/jobs/${view.job.id}`, body);
  }

  return [
    route({
      method: 'GET',
      path: '/api/backup',
      tag,
      operationId: 'listBackups',
      permission: 'backup:read',
      summary: 'List backups',
      description:
        'With the last log lines of backup jobs, the sections, the engines and the store.',
      query: BackupQuery,
      responses: { 200: BackupList },
      handle: async ({ caller, query }) => {
        const { items, ...page } = await BACKUPS.page(
          query,
          (request) => backups.list(caller, request),
          backupSummary,
        );
        const storage = backups.storage();
        const logs = (await backups.logs(caller)).map(({ at, ...line }) => ({
          ...line,
          at: at.toISOString(),
        }));
        return ok({
          backups: items,
          logs,
          sections: sectionRecords({
            tablesOf: backups.tablesOf,
            references: await backups.sectionReferences(),
          }),
          engines: engineRecords(storage.problems.length === 0),
          storage: storageRecord(storage),
          ...page,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/create',
      tag,
      operationId: 'createBackup',
      permission: 'backup:write',
      summary: 'Create a backup',
      description:
        'A backup of the platform contains everything, a backup of a tenant its records.',
      body: BackupRequest,
      example: { mode: 'full', label: 'before the upgrade', retention: { last: 3 } },
      responses: { 201: BackupRecord },
      problems: [501],
      headers: ['Prefer'],
      replayResponse: (caller, id) => createdResponse(caller, id),
      handle: async ({ caller, body, prefer, signal }) => {
        const { backup, warnings } = await backups.create(caller, body);
        const advice = warnings.length > 0 ? { warnings } : {};
        if (prefer.waitMs > 0)
          await backups.waitFor(caller, backup, {
            waitMs: prefer.waitMs,
            signal,
            justCreated: true,
          });
        return createdResponse(caller, backup.id, advice);
      },
    }),
    route({
      method: 'GET',
      path: '/api/backup/{backupId}',
      tag,
      operationId: 'getBackup',
      permission: 'backup:read',
      summary: 'Get a backup',
      description: 'With its tables and the result of its last validation or restore.',
      params: OneBackup,
      responses: { 200: BackupRecord },
      handle: async ({ caller, params }) => ok(await readBackup(caller, params.backupId)),
    }),
    route({
      method: 'DELETE',
      path: '/api/backup/{backupId}',
      tag,
      operationId: 'deleteBackup',
      permission: 'backup:write',
      summary: 'Delete a backup and its archive',
      params: OneBackup,
      responses: { 204: null },
      problems: [501],
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch, signal }) => {
        await backups.remove(caller, params.backupId, expectedVersion(ifMatch));
        await backups.waitForRemoval(caller, params.backupId, signal);
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/restore/validate',
      tag,
      operationId: 'validateRestore',
      permission: 'backup:read',
      summary: 'Preview a restore',
      description:
        'Reports what a restore would change, and what prevents it, without changing anything. ' +
        'The response has status 202 when the report is not ready after 50 seconds.',
      body: ValidateRequest,
      example: { backupId: EXAMPLE_ID },
      responses: { 200: ValidationRecord, 202: ValidationRecord },
      problems: [404],
      headers: ['Prefer'],
      replayResponse: async (caller, id) =>
        validationResponse(caller, await restores.find(caller, id)),
      handle: async ({ caller, body, prefer, signal }) => {
        const { job } = await restores.validate(caller, body);
        const waitMs = prefer.waitMs || REPORT_WAIT_MS;
        const limits = { waitMs, signal, justCreated: true };
        return validationResponse(caller, await restores.waitFor(caller, job.id, 'end', limits));
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/restore',
      tag,
      operationId: 'restoreBackup',
      permission: 'backup:restore',
      summary: 'Restore a backup',
      description:
        'All or nothing, after another validation. With the `planHash` of a validation, exactly ' +
        'the changes of that validation are made, or none.',
      body: RestoreBody,
      example: { backupId: EXAMPLE_ID, sections: ['inventory'], preRestoreBackup: true },
      responses: { 202: RestoreRecord },
      problems: [404],
      headers: ['Prefer'],
      replayResponse: async (caller, id) =>
        restoreResponse(caller, await restores.find(caller, id, 'backup:restore')),
      handle: async ({ caller, body, prefer, signal }) => {
        const { job } = await restores.restore(caller, body);
        const until = prefer.waitMs > 0 ? 'end' : 'report';
        const waitMs = prefer.waitMs || REPORT_WAIT_MS;
        const limits = { waitMs, signal, justCreated: true };
        return restoreResponse(caller, await restores.waitFor(caller, job.id, until, limits));
      },
    }),
    ...restoreRunRoutes({ history, access }),
  ];
}
