import { Type } from 'typebox';
import type { Access } from '../../services/access/access.ts';
import type { RestoreHistory } from '../../services/backups/restoreHistory.ts';
import { ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id } from '../http/schemas.ts';
import { mayReadAt, runRecord, runSummary } from './presenter.ts';
import { RESTORE_RUNS, RestoreRunRecord } from './runSchemas.ts';

const tag = 'Backups';

type Deps = { history: RestoreHistory; access: Pick<Access, 'holds'> };

/** Reading the previews, test restores and restores of backups. */
export const restoreRunRoutes = ({ history, access }: Deps): Route[] => [
  route({
    method: 'GET',
    path: '/api/backup/{backupId}/runs',
    tag,
    operationId: 'listRestoreRuns',
    permission: 'backup:read',
    summary: 'List what was done with the archive of a backup',
    description: 'Previews, test restores and restores, newest first, until their jobs are purged.',
    params: Type.Object({ backupId: Id('bkp') }, closed),
    query: RESTORE_RUNS.query,
    responses: { 200: RESTORE_RUNS.schema },
    handle: ({ caller, params, query }) =>
      RESTORE_RUNS.respond(
        query,
        (request) => history.list(caller, params.backupId, request),
        runSummary,
      ),
  }),
  route({
    method: 'GET',
    path: '/api/backup/{backupId}/runs/{jobId}',
    tag,
    operationId: 'getRestoreRun',
    permission: 'backup:read',
    summary: 'Get a preview, a test restore or a restore',
    description: 'With its report as soon as the archive is compared, and its outcome.',
    params: Type.Object({ backupId: Id('bkp'), jobId: Id('job') }, closed),
    responses: { 200: RestoreRunRecord },
    handle: async ({ caller, params }) => {
      const run = await history.read(caller, params);
      return ok(runRecord(run, mayReadAt(access, caller, run.tenantId)));
    },
  }),
];
