import { buffer } from 'node:stream/consumers';
import { Type, type Static } from 'typebox';
import { MAX_RESULT_BYTES } from '../../domain/jobs/jobs.ts';
import { remainingLines } from '../../domain/jobs/logLines.ts';
import { lastAttemptOf } from '../../domain/jobs/retry.ts';
import type { EndRequest as End } from '../../domain/runners/protocol.ts';
import { RUNNER_REPORT_SECONDS } from '../../domain/runners/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField, invalidFields, isTooManyRequests } from '../../domain/shared/errors.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import { once } from '../../platform/once.ts';
import { parseStrictJson, problemText } from '../../platform/strictJson.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Announcements } from '../../services/runners/announcements.ts';
import type { RemoteAttempts } from '../../services/runners/attempts.ts';
import type { BeginAnswer as Begin } from '../../services/runners/beginAnswer.ts';
import type { RemoteLine, RemoteLines } from '../../services/runners/lines.ts';
import { requireRunner } from '../http/authorize.ts';
import { parseTime } from '../http/queryTime.ts';
import { noContent, ok } from '../http/response.ts';
import { route, type Route, type Upload } from '../http/route.ts';
import { Id } from '../http/schemas.ts';
import { checkedAnnouncement, MAX_ANNOUNCEMENT_BYTES } from './announcement.ts';
import {
  AliveAnswer,
  AliveRequest,
  AnnounceAnswer,
  AnnounceRequest,
  BeginAnswer,
  BeginRequest,
  EndAnswer,
  EndRequest,
  LeaveRequest,
  Lines,
  LinesAnswer,
  LinesQuery,
} from './schemas.ts';

const tag = 'Runner protocol';
const JobParams = Type.Object({ jobId: Id('job') }, { additionalProperties: false });

/** Most bytes of lines in one request. */
const MAX_LINES_BYTES = 2 * 1_048_576;

/** Most bytes of the end of an attempt: the size of a result is checked as it is stored, without escapes. */
const MAX_END_BYTES = 4 * MAX_RESULT_BYTES;

type Deps = {
  announcements: Announcements;
  remoteAttempts: RemoteAttempts;
  remoteLines: RemoteLines;
  config: { taskQueue: string; temporal: { namespace: string } };
  slots: { logLines: Slots };
};

type Reporting = {
  caller: Caller;
  header: (name: string) => string | undefined;
  signal: AbortSignal;
};

/** Examples of the reference. */
const PROCESS = '0193a7c4-55d0-7c2e-9f0a-3f7d1c2b4a5e';
const DIGEST = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';

const checkLines = once(() => compileCheck(Lines));
const checkTime = once(() => compileCheck(Type.String({ format: 'date-time' })));

/**
 * The time of a line; undefined for a text that is no time in RFC 3339, such as one without an offset: a
 * wrong time is not worth the lines that the runner would drop with a refused one.
 */
function lineTime(at: string): Date | undefined {
  if (checkTime()(at).length > 0) return undefined;
  try {
    return parseTime('at', at, 'body');
  } catch {
    return undefined;
  }
}

/**
 * Parses line number `i`, counted from 0. Data of which `JSON.parse` would lose a part is left out, and the
 * line says so: the runner drops lines that are refused, with all that it sent with them. Error:
 * `invalid_request`.
 */
function parseLine(line: string, i: number): unknown {
  const { value, errors } = parseStrictJson(line, () => true);
  const [first] = errors;
  if (!first) return value;
  if (first.code === 'json') throw invalidField('body', `/${i}`, 'json', 'is not JSON');
  const isOfData = errors.every(
    ({ code, pointer }) => code === 'depth' || /^\/data(?:\/|$)/.test(pointer),
  );
  if (!isOfData)
    throw invalidFields(
      errors.map(({ pointer, ...error }) => ({ in: 'body', pointer: `/${i}${pointer}`, ...error })),
    );
  const leftOut = problemText(first, '/data');
  return { ...(JSON.parse(line) as object), data: { leftOut } };
}

/** Lines of JSON. Errors: `invalid_request`; `body_too_large` while reading. */
async function readLines(upload: Upload | undefined): Promise<RemoteLine[]> {
  const text = upload ? (await buffer(upload.source)).toString('utf8') : '';
  const lines: unknown[] = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseLine);
  const errors = checkLines()(lines);
  if (errors.length > 0) throw invalidFields(errors.map((error) => ({ in: 'body', ...error })));
  return (lines as Static<typeof Lines>).map(({ at, ...line }) => ({
    ...line,
    at: at === undefined ? undefined : lineTime(at),
  }));
}

/** Reports that are not larger need no slot: those that keep a lease, and what most commands print. */
const SMALL_REPORT_BYTES = 65_536;

/**
 * The lines of a report. It is not read while too many large ones are, or too many that arrive slowly: then none is
 * taken, and the runner sends them again, but its lease and its progress count. Errors: those of `readLines`.
 */
async function takeLines(
  upload: Upload | undefined,
  { caller, header, signal }: Reporting,
  slots: Slots,
): Promise<RemoteLine[]> {
  const bytes = Number(header('content-length') ?? Infinity);
  if (!upload || bytes <= SMALL_REPORT_BYTES) return readLines(upload);
  try {
    return await slots.receive(caller, signal, upload.source, () => readLines(upload));
  } catch (error) {
    if (isTooManyRequests(error)) return [];
    throw error;
  }
}

/** Error: `invalid_request` for a request without the header. */
export function attemptToken(header: (name: string) => string | undefined): string {
  const token = header('attempt-token');
  if (token === undefined || !/^[\w-]{20,100}$/.test(token))
    throw invalidField('header', '/Attempt-Token', 'required', 'must be the token of the attempt');
  return token;
}

/** The answer to `begin`. The payload is not masked: the runner works with it. */
function beginView(answer: Begin) {
  if (answer.outcome !== 'started') return answer;
  const { job, type, digest, deadline, target, secrets, attemptToken: token } = answer;
  return {
    outcome: answer.outcome,
    attempt: job.attempts,
    attemptToken: token,
    type: job.type,
    digest,
    payload: job.payload,
    target,
    secrets,
    deadline: deadline.toISOString(),
    timeoutMs: type.timeoutMs,
    leaseMs: type.definition.lostAfterSeconds * 1_000,
    maxAttempts: lastAttemptOf(job),
    remainingLines: remainingLines(job.logCount),
    tenantId: job.tenantId,
    createdBy: job.createdBy,
  };
}

/** Error: `invalid_request` unless the body says exactly one thing. */
function endOf({ result, failure, cancelled, droppedLines = 0 }: Static<typeof EndRequest>): End {
  const given = [result, failure, cancelled === true ? cancelled : undefined];
  if (given.filter((each) => each !== undefined).length !== 1)
    throw invalidField('body', '', 'one_of', 'must have one of result, failure and cancelled');
  if (result) return { result, droppedLines };
  return failure ? { failure, droppedLines } : { cancelled: true, droppedLines };
}

/** What runners call. Their tokens reach nothing else. */
export const protocolRoutes = ({
  announcements,
  remoteAttempts,
  remoteLines,
  config,
  slots,
}: Deps): Route[] => [
  route({
    method: 'POST',
    path: '/api/runner/announce',
    tag,
    runner: 'it announces the runner',
    operationId: 'announceRunner',
    summary: 'Announce a runner of a pool, with the job types that it can run',
    description:
      'Replaces what the process has announced for the pool before. A new type waits until it is accepted, unless its pool accepts it by its name.',
    body: AnnounceRequest,
    bodyBytes: MAX_ANNOUNCEMENT_BYTES,
    bodyCheckedInHandler: true,
    example: {
      runnerId: PROCESS,
      name: 'ams-1',
      version: '0.2.0',
      slots: 8,
      pool: 'default',
      types: [
        {
          digest: DIGEST,
          definition: {
            name: 'net.port-audit',
            summary: 'Compares ports with the inventory',
            pool: 'default',
            targets: 'device',
            access: 'granted',
            payload: { type: 'object', properties: { dryRun: { type: 'boolean' } } },
            timeoutSeconds: 1_800,
            lostAfterSeconds: 30,
          },
        },
      ],
    },
    responses: { 200: AnnounceAnswer },
    problems: [404],
    handle: async ({ caller, body }) => {
      const identity = requireRunner(caller);
      const { announcement, refused } = checkedAnnouncement(body);
      const { runner, types } = await announcements.announce(caller, identity, announcement);
      return ok({
        runner,
        types: [...types, ...refused],
        taskQueue: `${config.taskQueue}-pool-${announcement.pool}`,
        namespace: config.temporal.namespace,
        everySeconds: RUNNER_REPORT_SECONDS,
      });
    },
  }),
  route({
    method: 'POST',
    path: '/api/runner/alive',
    tag,
    runner: 'it reports about the runner',
    operationId: 'reportRunner',
    summary: 'Report that a runner is alive',
    description: '404 `unknown_runner`: it must announce itself again.',
    body: AliveRequest,
    example: { runnerId: PROCESS, pool: 'default' },
    responses: { 200: AliveAnswer },
    problems: [404],
    handle: async ({ caller, body }) =>
      ok({ types: await announcements.alive(caller, requireRunner(caller), body) }),
  }),
  route({
    method: 'POST',
    path: '/api/runner/leave',
    tag,
    runner: 'it forgets the runner',
    operationId: 'removeOwnRunner',
    summary: 'Report that a runner stops',
    body: LeaveRequest,
    example: { runnerId: PROCESS, pool: 'default' },
    responses: { 204: null },
    handle: async ({ caller, body }) => {
      await announcements.leave(requireRunner(caller), body);
      return noContent();
    },
  }),
  route({
    method: 'POST',
    path: '/api/runner/jobs/{jobId}/begin',
    tag,
    runner: 'for jobs of the pools of the runner',
    operationId: 'beginAttempt',
    summary: 'Begin the next attempt of a job',
    params: JobParams,
    body: BeginRequest,
    example: { runnerId: PROCESS, workflowRunId: PROCESS, digest: DIGEST },
    secretBody: true,
    responses: { 200: BeginAnswer },
    handle: async ({ caller, params, body }) => ({
      ...ok(beginView(await remoteAttempts.begin(requireRunner(caller), params.jobId, body))),
      containsSecret: true,
    }),
  }),
  route({
    method: 'POST',
    path: '/api/runner/jobs/{jobId}/lines',
    tag,
    runner: 'for the attempt of the header `Attempt-Token`',
    operationId: 'addAttemptLines',
    summary: 'Add lines to the log of an attempt, set its progress and keep its lease',
    description:
      'The body is lines of JSON with `level`, `message` and perhaps `data` and `at`, a time in RFC 3339; it may be empty. Lines with another time, or with one that is still to come, have the time of the request. Lines that were received before are left out. 409 `attempt_lost`: stop the work, and report nothing more.',
    params: JobParams,
    query: LinesQuery,
    upload: {
      examples: { 'application/x-ndjson': '{"level":"info","message":"12 ports checked"}\n' },
      limitBytes: MAX_LINES_BYTES,
    },
    headers: ['Attempt-Token'],
    responses: { 200: LinesAnswer },
    problems: [409],
    handle: async ({ caller, params, query, header, upload, signal }) => {
      const { firstLine, progress, progressMessage } = query;
      const lines = await takeLines(upload, { caller, header, signal }, slots.logLines);
      return ok(
        await remoteLines.append(requireRunner(caller), params.jobId, attemptToken(header), {
          firstLine,
          lines,
          ...(progress !== undefined && {
            progress: {
              percent: progress,
              ...(progressMessage !== undefined && { message: progressMessage }),
            },
          }),
        }),
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/runner/jobs/{jobId}/end',
    tag,
    runner: 'for the attempt of the header `Attempt-Token`',
    operationId: 'endAttempt',
    summary: 'End an attempt with its result or its failure',
    description:
      'A repeated request gets the same answer. 409 `attempt_lost`: the attempt no longer counts.',
    params: JobParams,
    body: EndRequest,
    bodyBytes: MAX_END_BYTES,
    example: { result: { checkedPorts: 48, differences: 0 } },
    headers: ['Attempt-Token'],
    responses: { 200: EndAnswer },
    problems: [409],
    handle: async ({ caller, params, body, header }) =>
      ok(
        await remoteAttempts.end(
          requireRunner(caller),
          params.jobId,
          attemptToken(header),
          endOf(body),
        ),
      ),
  }),
];
