import { crc32 } from 'node:zlib';
import { Type } from 'typebox';
import type { Jobs, JobWithLogs } from '../../services/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { ScheduleBackfills } from '../../services/scheduleBackfills.ts';
import { preview, type ScheduleFields } from '../../services/schedules/fields.ts';
import type { ScheduleFires } from '../../services/scheduleFires.ts';
import type { RunFilter, ScheduleLog } from '../../services/scheduleLog.ts';
import type { Schedules, ScheduleWithRun } from '../../services/schedules.ts';
import { accepted, created, noContent, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { jobAtEnd } from '../kit/jobAtEnd.ts';
import { listAnswer, listOf } from '../http/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { jobPresenter } from '../jobs/presenter.ts';
import { previewRecord, runRecord, schedulePresenter } from '../schedules/presenter.ts';
import { Id } from '../http/schemas.ts';
import { JobRecord } from '../jobs/schemas.ts';
import {
  BackfillRequest,
  BackupScheduleRequest,
  PreviewRecord,
  PreviewRequest,
  ReasonRequest,
  RunQuery,
  RunRecord,
  ScheduleChange,
  ScheduleQuery,
  ScheduleRecord,
  ScheduleRequest,
  ScheduleSummary,
} from '../schedules/schemas.ts';

const area = 'Schedules';
const closed = { additionalProperties: false };

const OneSchedule = Type.Object({ id: Id('sch') }, closed);
const OneRun = Type.Object({ id: Id('run') }, closed);

type Deps = {
  schedules: Schedules;
  fires: ScheduleFires;
  scheduleLog: ScheduleLog;
  scheduleBackfills: ScheduleBackfills;
  jobs: Jobs;
  jobTypes: JobTypes;
};

/** When jobs are made, and what became of every time due. */
export function scheduleRoutes({
  schedules,
  fires,
  scheduleLog,
  scheduleBackfills,
  jobs,
  jobTypes,
}: Deps): Route[] {
  const present = schedulePresenter(jobTypes);
  const jobRecord = jobPresenter(jobTypes).record;
  const atEnd = jobAtEnd(jobs);

  const one = (schedule: ScheduleWithRun): Answer => {
    const body = present.record(schedule);
    // Runs come without a new version of the schedule.
    return ok(body, { etag: etagOf(body.version, crc32(JSON.stringify(body))) });
  };
  const made = (schedule: ScheduleWithRun): Answer => {
    const { body, headers } = one(schedule);
    return created(`/api/schedules/${schedule.schedule.id}`, body, headers);
  };
  const triggered = (run: Awaited<ReturnType<ScheduleLog['read']>>): Answer =>
    accepted(runRecord(run), { location: `/api/schedules/logs/${run.id}` });
  const begun = ({ job, logs }: JobWithLogs): Answer =>
    accepted(jobRecord(job, logs), { location: `/api/jobs/${job.id}` });

  return [
    route({
      method: 'GET',
      path: '/api/schedules',
      area,
      permission: 'schedule:read',
      summary: 'List schedules, newest first, without payload',
      query: ScheduleQuery,
      answers: { 200: listOf(ScheduleSummary, 'ScheduleList') },
      handle: ({ caller, query: { limit, cursor, ...filter } }) =>
        listAnswer(
          'schedules',
          'sch',
          { limit, cursor },
          (page) => schedules.list(caller, filter, page),
          present.summary,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/schedules',
      area,
      permission: 'schedule:write',
      summary: 'Make a schedule; its jobs are made with your rights',
      body: ScheduleRequest,
      answers: { 201: ScheduleRecord },
      recover: async (caller, id) => made(await schedules.read(caller, id)),
      handle: async ({ caller, body }) => made(await schedules.create(caller, fieldsOf(body))),
    }),
    route({
      method: 'POST',
      path: '/api/backup/schedules',
      area: 'Backups',
      permission: 'schedule:write',
      summary: 'Make a schedule of backups',
      body: BackupScheduleRequest,
      answers: { 201: ScheduleRecord },
      recover: async (caller, id) => made(await schedules.read(caller, id)),
      handle: async ({ caller, body }) => made(await schedules.createBackup(caller, body)),
    }),
    route({
      method: 'POST',
      path: '/api/schedules/preview',
      area,
      permission: 'schedule:read',
      summary: 'See when an expression is due, daylight saving included; nothing is kept',
      body: PreviewRequest,
      answers: { 200: PreviewRecord },
      handle: ({ body }) => Promise.resolve(ok(previewRecord(preview(previewOf(body))))),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/logs',
      area,
      permission: 'schedule:read',
      summary: 'List what became of every time due, the latest first',
      query: RunQuery,
      answers: { 200: listOf(RunRecord, 'ScheduleRunList') },
      handle: ({ caller, query }) =>
        listAnswer(
          'schedule-runs',
          'run',
          query,
          (page) => scheduleLog.list(caller, filterOf(query), page),
          runRecord,
        ),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/logs/{id}',
      area,
      permission: 'schedule:read',
      summary: 'Read what became of one time due, or of a trigger',
      params: OneRun,
      answers: { 200: RunRecord },
      handle: async ({ caller, params }) =>
        ok(runRecord(await scheduleLog.read(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/{id}',
      area,
      permission: 'schedule:read',
      summary: 'Read a schedule with its next runs and its last',
      params: OneSchedule,
      answers: { 200: ScheduleRecord },
      handle: async ({ caller, params }) => one(await schedules.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/schedules/{id}',
      area,
      permission: 'schedule:write',
      summary: 'Change a schedule; whoever changes what its jobs do owns it',
      params: OneSchedule,
      body: ScheduleChange,
      answers: { 200: ScheduleRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await schedules.update(caller, params.id, fieldsOf(body), expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/schedules/{id}',
      area,
      permission: 'schedule:write',
      summary: 'Delete a schedule; its jobs and logs stay',
      params: OneSchedule,
      answers: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await schedules.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/trigger',
      area,
      permission: 'schedule:write',
      summary: 'Run a schedule now, paused or not',
      params: OneSchedule,
      answers: { 202: RunRecord },
      recover: async (caller, id) => triggered(await scheduleLog.read(caller, id)),
      handle: async ({ caller, params }) => triggered(await fires.trigger(caller, params.id)),
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/pause',
      area,
      permission: 'schedule:write',
      summary: 'Pause a schedule: times due are skipped',
      params: OneSchedule,
      body: ReasonRequest,
      answers: { 200: ScheduleRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await schedules.pause(caller, params.id, body.reason, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/resume',
      area,
      permission: 'schedule:write',
      summary: 'Resume a schedule from now on',
      params: OneSchedule,
      body: ReasonRequest,
      answers: { 200: ScheduleRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await schedules.resume(caller, params.id, body.reason, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/backfill',
      area,
      permission: 'schedule:write',
      summary: 'Make the jobs of times due in the past that have not fired, as a job',
      params: OneSchedule,
      body: BackfillRequest,
      answers: { 202: JobRecord },
      headers: ['Prefer'],
      recover: async (caller, id) => begun(await jobs.read(caller, id)),
      handle: async (request) => {
        const { caller, params, body } = request;
        const range = {
          since: dateOf('since', body.since, 'body'),
          until: dateOf('until', body.until, 'body'),
        };
        return begun(await atEnd(request, await scheduleBackfills.begin(caller, params.id, range)));
      },
    }),
  ];
}

type Dates = { startAt?: string | null; endAt?: string | null };

const dateOrNull = (name: string, text: string | null): Date | null =>
  text === null ? null : dateOf(name, text, 'body');

/** The fields of a request, its times as such. */
const fieldsOf = <T extends Dates>({
  startAt,
  endAt,
  ...rest
}: T): Omit<T, keyof Dates> & Pick<ScheduleFields, keyof Dates> => ({
  ...rest,
  ...(startAt !== undefined && { startAt: dateOrNull('startAt', startAt) }),
  ...(endAt !== undefined && { endAt: dateOrNull('endAt', endAt) }),
});

const previewOf = ({
  startAt,
  endAt,
  after,
  ...rest
}: PreviewRequest): Parameters<typeof preview>[0] => ({
  ...rest,
  after: after === undefined ? new Date() : dateOf('after', after, 'body'),
  ...(startAt !== undefined && { startAt: dateOf('startAt', startAt, 'body') }),
  ...(endAt !== undefined && { endAt: dateOf('endAt', endAt, 'body') }),
});

const filterOf = ({ limit: _, cursor: __, since, until, ...rest }: RunQuery): RunFilter => ({
  ...rest,
  ...(since !== undefined && { since: dateOf('since', since) }),
  ...(until !== undefined && { until: dateOf('until', until) }),
});
