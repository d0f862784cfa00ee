import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Access } from '../../services/access.ts';
import type { Backups } from '../../services/backups/backups.ts';
import type { Restores, RestoreView } from '../../services/backups/restores.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { accepted, created, noContent, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { pageOf } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import {
  backupRecord,
  backupSummary,
  engineRecords,
  restoreRecord,
  sectionRecords,
  validationRecord,
} from './presenter.ts';
import {
  BackupList,
  BackupQuery,
  BackupRecord,
  BackupRequest,
  RestoreBody,
  RestoreRecord,
  ValidateRequest,
  ValidationRecord,
} from './schemas.ts';
import { Id } from '../http/schemas.ts';

const area = 'Backups';
const OneBackup = Type.Object({ backupId: Id('bkp') }, { additionalProperties: false });

/** A look at the records is waited for so long; proxies mostly give up after a minute. */
const LOOK_WAIT_MS = 50_000;

type Deps = { backups: Backups; restores: Restores; access: Access };

/** Archives of the records: making, looking at, proving, restoring and deleting them. */
export function backupRoutes({ backups, restores, access }: Deps): Route[] {
  /** Records of a section are shown to whoever may read them where the backup stands. */
  const reader = (caller: Caller, tenantId: string) => (permission: Permission) =>
    access.holds(caller.rights, permission, { tenantId });

  async function one(caller: Caller, id: string): Promise<{ body: BackupRecord; etag: string }> {
    const found = await backups.read(caller, id);
    return {
      body: backupRecord(found, reader(caller, found.backup.tenantId)),
      etag: etagOf(found.backup.version),
    };
  }
  async function made(caller: Caller, id: string): Promise<Answer> {
    const { body, etag } = await one(caller, id);
    return created(`/api/backup/${id}`, body, { etag });
  }
  const looked = (caller: Caller, view: RestoreView): Answer => {
    const body = validationRecord(view, reader(caller, view.run.tenantId));
    return isFinal(view.job.status)
      ? ok(body)
      : accepted(body, { location: `/api/jobs/${view.job.id}` });
  };
  const restored = (caller: Caller, view: RestoreView): Answer => {
    const body = restoreRecord(view, reader(caller, view.run.tenantId));
    const { code, message } =
      view.job.status === 'failed'
        ? (view.job.error ?? { code: '', message: '' })
        : { code: '', message: '' };
    if (code === 'restore_stale')
      throw new AppError('restore_stale', `${message}; validate again.`);
    if (code === 'restore_invalid')
      throw new AppError('restore_invalid', message, {
        report: {
          valid: body.valid,
          errors: body.errors,
          warnings: body.warnings,
          preview: body.preview,
          planHash: body.planHash,
        },
      });
    return accepted(body, { location: `/api/jobs/${view.job.id}` });
  };

  return [
    route({
      method: 'GET',
      path: '/api/backup',
      area,
      permission: 'backup:read',
      summary:
        'List backups, newest first, with the last lines of their logs, the sections and the engines',
      query: BackupQuery,
      answers: { 200: BackupList },
      handle: async ({ caller, query: { limit, cursor, ...filter } }) => {
        const { items, nextCursor } = await pageOf(
          'backups',
          'bkp',
          { limit, cursor },
          (page) => backups.list(caller, filter, page),
          backupSummary,
        );
        const logs = (await backups.logs(caller)).map(({ at, ...line }) => ({
          ...line,
          at: at.toISOString(),
        }));
        return ok({
          backups: items,
          logs,
          sections: sectionRecords(),
          engines: engineRecords(backups.canRun()),
          nextCursor,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/create',
      area,
      permission: 'backup:write',
      summary: "Make a backup: of everything at the platform, elsewhere of the tenant's records",
      body: BackupRequest,
      answers: { 201: BackupRecord },
      headers: ['Prefer'],
      recover: made,
      handle: async ({ caller, body, prefer, signal }) => {
        const { backup } = await backups.create(caller, body);
        if (prefer.waitMs > 0)
          await backups.waitFor(backup, { waitMs: prefer.waitMs, signal, fresh: true });
        return backups.mayRead(caller, backup.tenantId)
          ? made(caller, backup.id)
          : created(
              `/api/backup/${backup.id}`,
              backupRecord({ backup, look: null, unreadable: null }, () => false),
              { etag: etagOf(backup.version) },
            );
      },
    }),
    route({
      method: 'GET',
      path: '/api/backup/{backupId}',
      area,
      permission: 'backup:read',
      summary: 'Read a backup, what is in it, and the last look at what restoring it would do',
      params: OneBackup,
      answers: { 200: BackupRecord },
      handle: async ({ caller, params }) => {
        const { body, etag } = await one(caller, params.backupId);
        return ok(body, { etag });
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/backup/{backupId}',
      area,
      permission: 'backup:write',
      summary: 'Delete a backup and its archive',
      params: OneBackup,
      answers: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch, signal }) => {
        await backups.remove(caller, params.backupId, expectedVersion(ifMatch));
        await backups.waitForRemoval(params.backupId, signal);
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/restore/validate',
      area,
      permission: 'backup:read',
      summary: 'Look at what a restore would do, record by record; nothing changes',
      body: ValidateRequest,
      answers: { 200: ValidationRecord, 202: ValidationRecord },
      headers: ['Prefer'],
      recover: async (caller, id) => looked(caller, await restores.find(caller, id)),
      handle: async ({ caller, body, prefer, signal }) => {
        const { job } = await restores.validate(caller, body);
        return looked(
          caller,
          await restores.waitFor(job.id, 'end', {
            waitMs: prefer.waitMs || LOOK_WAIT_MS,
            signal,
            fresh: true,
          }),
        );
      },
    }),
    route({
      method: 'POST',
      path: '/api/backup/restore',
      area,
      permission: 'backup:restore',
      summary: 'Restore a backup, all or nothing, after it was validated again',
      body: RestoreBody,
      answers: { 202: RestoreRecord },
      headers: ['Prefer'],
      recover: async (caller, id) => restored(caller, await restores.find(caller, id)),
      handle: async ({ caller, body, prefer, signal }) => {
        const { job } = await restores.restore(caller, body);
        const what = prefer.waitMs > 0 ? 'end' : 'report';
        return restored(
          caller,
          await restores.waitFor(job.id, what, {
            waitMs: prefer.waitMs || LOOK_WAIT_MS,
            signal,
            fresh: true,
          }),
        );
      },
    }),
  ];
}
