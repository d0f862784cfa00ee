import { Type, type Static } from 'typebox';
import type { ScheduleRunWithJob } from '../../domain/schedules/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { Backfills } from '../../services/schedules/backfills.ts';
import { preview, type ScheduleFields } from '../../services/schedules/fields.ts';
import type { ScheduleRunner } from '../../services/schedules/scheduleRunner.ts';
import type { RunHistory } from '../../services/schedules/runHistory.ts';
import type {
  SavedSchedule,
  Schedules,
  ScheduleWithLastRun,
} from '../../services/schedules/schedules.ts';
import { accepted, created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { waitForJob } from '../jobs/waitForJob.ts';
import { parseTime } from '../http/queryTime.ts';
import { route, type Route } from '../http/route.ts';
import { jobPresenter } from '../jobs/presenter.ts';
import { dayRecord, previewRecord, runRecord, schedulePresenter } from './presenter.ts';
import { closed, Id } from '../http/schemas.ts';
import { JobRecord } from '../jobs/schemas.ts';
import {
  BackfillPreviewRecord,
  BackfillRequest,
  BackupScheduleRequest,
  DaysQuery,
  PreviewRecord,
  PreviewRequest,
  ReasonRequest,
  RUNS,
  RunRecord,
  ScheduleChange,
  ScheduleDays,
  ScheduleRecord,
  ScheduleRequest,
  SCHEDULES,
} from './schemas.ts';

const tag = 'Schedules';

const ScheduleParams = Type.Object({ id: Id('sch') }, closed);
const RunParams = Type.Object({ id: Id('run') }, closed);

/** Describes the operations that run the jobs of a schedule with the rights of its owner. */
const NEEDS_JOB_PERMISSION =
  'Also needs the permission of the job type, if it has one, such as backup:restore.';

const SCHEDULE_EXAMPLE = {
  name: 'hello',
  cronExpression: '*/5 * * * *',
  timezone: 'Europe/London',
  jobType: 'core.echo',
  payload: { hello: 1 },
};

type Deps = {
  schedules: Schedules;
  runner: ScheduleRunner;
  runHistory: RunHistory;
  backfills: Backfills;
  jobs: Jobs;
  jobTypes: JobTypes;
};

/** Schedules, their runs and backfills. */
export function scheduleRoutes({
  schedules,
  runner,
  runHistory,
  backfills,
  jobs,
  jobTypes,
}: Deps): Route[] {
  const present = schedulePresenter(jobTypes);
  const jobRecord = jobPresenter(jobTypes).record;
  const waitForBackfill = waitForJob(jobs, 'schedule:write');

  const okResponse = async (
    caller: Caller,
    found: ScheduleWithLastRun & Partial<Pick<SavedSchedule, 'warnings'>>,
  ): Promise<HttpResponse> => {
    const { warnings = [] } = found;
    const body = await present.record(found, caller);
    return ok(warnings.length > 0 ? { ...body, warnings } : body);
  };
  const createdResponse = async (
    caller: Caller,
    saved: ScheduleWithLastRun | SavedSchedule,
  ): Promise<HttpResponse> => {
    const { body } = await okResponse(caller, saved);
    return created(`/api/schedules/${saved.schedule.id}`, body);
  };
  const replayResponse = async (caller: Caller, id: string): Promise<HttpResponse> =>
    createdResponse(caller, await schedules.read(caller, id, 'schedule:write'));
  const triggerResponse = (run: ScheduleRunWithJob): HttpResponse =>
    accepted(`/api/schedules/logs/${run.id}`, runRecord(run));
  const backfillResponse = async (found: JobWithLogs, caller: Caller): Promise<HttpResponse> =>
    accepted(`/api/jobs/${found.job.id}`, await jobRecord(found, caller));

  /** Pausing and resuming differ in what they do alone. */
  const switchRoute = (
    change: 'pause' | 'resume',
    words: {
      operationId: string;
      summary: string;
      description: string;
      example: { reason: string };
    },
  ): Route =>
    route({
      method: 'POST',
      path: `/api/schedules/{id}/${change}`,
      tag,
      permission: 'schedule:write',
      ...words,
      params: ScheduleParams,
      body: ReasonRequest,
      responses: { 200: ScheduleRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        okResponse(
          caller,
          await schedules[change](caller, params.id, body.reason, expectedVersion(ifMatch)),
        ),
    });

  return [
    route({
      method: 'GET',
      path: '/api/schedules',
      tag,
      permission: 'schedule:read',
      operationId: 'listSchedules',
      summary: 'List schedules',
      description: 'The list omits the payload of each schedule.',
      query: SCHEDULES.query,
      responses: { 200: SCHEDULES.schema },
      handle: ({ caller, query }) =>
        SCHEDULES.respond(query, (request) => schedules.list(caller, request), present.summary),
    }),
    route({
      method: 'POST',
      path: '/api/schedules',
      tag,
      permission: 'schedule:write',
      operationId: 'createSchedule',
      summary: 'Create a schedule',
      description:
        'The caller owns the schedule. Its jobs have the permissions of the owner. ' +
        'A warning says when the caller does not hold the permissions that these jobs need.',
      example: SCHEDULE_EXAMPLE,
      body: ScheduleRequest,
      responses: { 201: ScheduleRecord },
      replayResponse,
      handle: async ({ caller, body }) =>
        createdResponse(caller, await schedules.create(caller, toScheduleFields(body))),
    }),
    route({
      method: 'POST',
      path: '/api/backup/schedules',
      tag: 'Backups',
      permission: 'schedule:write',
      operationId: 'createBackupSchedule',
      summary: 'Create a schedule of backups',
      description: 'The mode full ignores sections; the mode partial without sections means all.',
      example: { name: 'nightly', cronExpression: '30 2 * * *', mode: 'full', label: 'nightly' },
      body: BackupScheduleRequest,
      responses: { 201: ScheduleRecord },
      replayResponse,
      handle: async ({ caller, body }) =>
        createdResponse(caller, await schedules.createBackup(caller, body)),
    }),
    route({
      method: 'POST',
      path: '/api/schedules/preview',
      tag,
      permission: ['schedule:read', 'schedule:write'],
      allowsReadOnly: true,
      operationId: 'previewSchedule',
      summary: 'Preview the occurrences of an expression',
      description: 'Shows the effect of daylight saving. Saves nothing.',
      example: {
        cronExpression: '30 1 * * *',
        timezone: 'Europe/London',
        after: '2027-03-27T12:00:00Z',
        count: 2,
      },
      body: PreviewRequest,
      responses: { 200: PreviewRecord },
      handle: ({ body }) => Promise.resolve(ok(previewRecord(preview(toPreviewInput(body))))),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/logs',
      tag,
      permission: 'schedule:read',
      operationId: 'listScheduleLogs',
      summary: 'List runs of schedules, the latest first',
      description: 'Has one row for each occurrence, also of deleted schedules.',
      query: RUNS.query,
      responses: { 200: RUNS.schema },
      handle: ({ caller, query }) =>
        RUNS.respond(query, (request) => runHistory.list(caller, request), runRecord),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/logs/{id}',
      tag,
      permission: 'schedule:read',
      operationId: 'getScheduleLog',
      summary: 'Get a run of a schedule',
      params: RunParams,
      responses: { 200: RunRecord },
      handle: async ({ caller, params }) => ok(runRecord(await runHistory.read(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/{id}',
      tag,
      permission: 'schedule:read',
      operationId: 'getSchedule',
      summary: 'Get a schedule with its next occurrences and last run',
      params: ScheduleParams,
      responses: { 200: ScheduleRecord },
      handle: async ({ caller, params }) =>
        okResponse(caller, await schedules.read(caller, params.id)),
    }),
    route({
      method: 'GET',
      path: '/api/schedules/{id}/days',
      tag,
      permission: 'schedule:read',
      expensiveRead: {},
      operationId: 'listScheduleDays',
      summary: 'Count the runs of a schedule by day and outcome',
      params: ScheduleParams,
      query: DaysQuery,
      responses: { 200: ScheduleDays },
      handle: async ({ caller, params, query }) => {
        const { schedule } = await schedules.read(caller, params.id);
        const { timezone, days } = await runHistory.days(schedule, query.days);
        return ok({ timezone, days: days?.map(dayRecord) ?? null });
      },
    }),
    route({
      method: 'PUT',
      path: '/api/schedules/{id}',
      tag,
      permission: 'schedule:write',
      operationId: 'updateSchedule',
      summary: 'Update a schedule',
      description:
        'Changes the fields in the body. A caller who changes the job type, the payload or the ' +
        'retry policy becomes the owner, and so does one who changes when the jobs run without the ' +
        'permission of their type, such as backup:restore.',
      example: { cronExpression: '0 3 * * mon-fri', maxRuns: 100 },
      params: ScheduleParams,
      body: ScheduleChange,
      responses: { 200: ScheduleRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        present.record(
          {
            schedule: await schedules.findToAct(caller, params.id, 'schedule:write'),
            lastRun: null,
          },
          caller,
        ),
      volatile: ['lastRun', 'nextRuns', 'runCount', 'state', 'timingProblem'],
      // Another job type requires a payload, which may be the same.
      passUnchanged: ['payload'],
      handle: async ({ caller, params, body, ifMatch }) =>
        okResponse(
          caller,
          await schedules.update(
            caller,
            params.id,
            toScheduleFields(body),
            expectedVersion(ifMatch),
          ),
        ),
    }),
    route({
      method: 'DELETE',
      path: '/api/schedules/{id}',
      tag,
      permission: 'schedule:write',
      operationId: 'deleteSchedule',
      summary: 'Delete a schedule',
      description: 'Its jobs and runs remain.',
      params: ScheduleParams,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await schedules.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/trigger',
      tag,
      permission: 'schedule:write',
      operationId: 'triggerSchedule',
      summary: 'Run a schedule now',
      description: `Also runs a paused schedule. Does not count towards maxRuns. ${NEEDS_JOB_PERMISSION}`,
      params: ScheduleParams,
      responses: { 202: RunRecord },
      replayResponse: async (caller, id) =>
        triggerResponse(await runHistory.read(caller, id, 'schedule:write')),
      handle: async ({ caller, params }) =>
        triggerResponse(await runHistory.withJob(await runner.trigger(caller, params.id))),
    }),
    switchRoute('pause', {
      operationId: 'pauseSchedule',
      summary: 'Pause a schedule',
      description: 'Occurrences are skipped until the schedule is resumed.',
      example: { reason: 'maintenance window' },
    }),
    switchRoute('resume', {
      operationId: 'resumeSchedule',
      summary: 'Resume a schedule',
      description: `Occurrences skipped during the pause are not run. ${NEEDS_JOB_PERMISSION}`,
      example: { reason: 'maintenance done' },
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/backfill',
      tag,
      permission: 'schedule:write',
      operationId: 'backfillSchedule',
      summary: 'Run past occurrences that have not run',
      description:
        'Starts a job that creates the jobs of at most 1,000 occurrences. Occurrences up to the ' +
        `last purged run of the schedule may have run: they are not run. ${NEEDS_JOB_PERMISSION}`,
      example: { since: '2026-11-21T12:00:00Z', until: '2026-11-21T13:00:00Z' },
      params: ScheduleParams,
      body: BackfillRequest,
      responses: { 202: JobRecord },
      headers: ['Prefer'],
      replayResponse: async (caller, id) =>
        backfillResponse(await jobs.read(caller, id, 'schedule:write'), caller),
      handle: async (request) => {
        const { caller, params, body } = request;
        return backfillResponse(
          await waitForBackfill(
            request,
            await backfills.start(caller, params.id, toInterval(body)),
          ),
          caller,
        );
      },
    }),
    route({
      method: 'POST',
      path: '/api/schedules/{id}/backfill/preview',
      tag,
      permission: 'schedule:write',
      allowsReadOnly: true,
      expensiveRead: {},
      operationId: 'previewBackfill',
      summary: 'Count what a backfill would run',
      description: `Has the errors of the backfill. Starts nothing. ${NEEDS_JOB_PERMISSION}`,
      example: { since: '2026-11-21T12:00:00Z', until: '2026-11-21T13:00:00Z' },
      params: ScheduleParams,
      body: BackfillRequest,
      responses: { 200: BackfillPreviewRecord },
      handle: async ({ caller, params, body }) =>
        ok(await backfills.preview(caller, params.id, toInterval(body))),
    }),
  ];
}

const toInterval = ({ since, until }: Static<typeof BackfillRequest>) => ({
  since: parseTime('since', since, 'body'),
  until: parseTime('until', until, 'body'),
});

type DateFields = { startAt?: string | null; endAt?: string | null };

const dateOrNull = (name: string, text: string | null): Date | null =>
  text === null ? null : parseTime(name, text, 'body');

/** The fields of a request with its times as dates. */
const toScheduleFields = <T extends DateFields>({
  startAt,
  endAt,
  ...rest
}: T): Omit<T, keyof DateFields> & Pick<ScheduleFields, keyof DateFields> => ({
  ...rest,
  ...(startAt !== undefined && { startAt: dateOrNull('startAt', startAt) }),
  ...(endAt !== undefined && { endAt: dateOrNull('endAt', endAt) }),
});

const toPreviewInput = ({
  startAt,
  endAt,
  after,
  ...rest
}: PreviewRequest): Parameters<typeof preview>[0] => ({
  ...rest,
  after: after === undefined ? new Date() : parseTime('after', after, 'body'),
  ...(startAt !== undefined && { startAt: parseTime('startAt', startAt, 'body') }),
  ...(endAt !== undefined && { endAt: parseTime('endAt', endAt, 'body') }),
});
