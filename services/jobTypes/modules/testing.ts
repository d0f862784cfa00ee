/**
 * `holdfast/job-type/testing`: runs a job type without Temporal, PostgreSQL or a server of Holdfast.
 */
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { MAX_LOG_LINES, MAX_RESULT_BYTES, type JobProgress } from '../../../domain/jobs/jobs.ts';
import { logData, logText, progressOf } from '../../../domain/jobs/logLines.ts';
import { createGuardedHttp } from '../../../platform/guardedHttp.ts';
import { createOwnEndpoints } from '../../../platform/ownEndpoints.ts';
import { compileForeignSchema } from '../../../platform/foreignSchema.ts';
import { DEFAULT_TIMEOUT_MS, definitionProblems } from './definition.ts';
import { createHttpTool } from './httpTool.ts';
import {
  JOB_TYPE_MARK,
  type HttpRequest,
  type HttpResponse,
  type InventoryTools,
  type JobTarget,
  type JobTools,
  type LogLevel,
  type ModuleJobType,
} from './jobType.ts';
import { runModule } from './run.ts';

export type TestJobOptions = {
  /** Number of the attempt; 1 by default. */
  attempt?: number;
  /** What the job is about, for a type with `targets`. */
  target?: JobTarget;
  /** Cancels the job after this time. 0: before it starts. */
  cancelAfterMs?: number;
  /** Answers requests. Without it they are sent, to public addresses and those of `outboundAllow`. */
  http?: (request: HttpRequest) => Promise<Partial<HttpResponse>> | Partial<HttpResponse>;
  /** Networks such as `127.0.0.0/8`, as in `HOLDFAST_OUTBOUND_ALLOW`. */
  outboundAllow?: readonly string[];
  /** Answers for the inventory. */
  inventory?: Partial<InventoryTools>;
};

export type TestJobOutcome = {
  /** `refused`: the payload is not valid, so there would be no job. */
  status: 'succeeded' | 'failed' | 'cancelled' | 'refused';
  result: object | null;
  failure: { code: string; message: string; retryable: boolean; retryAfterMs?: number } | null;
  log: { level: LogLevel; message: string; data: object | null }[];
  /** Every report, in order. */
  progress: JobProgress[];
  /** What `run` threw if that was no `JobFailure`. */
  error?: unknown;
};

/** Makes one attempt of a type, as a worker does. Error: a definition that a worker would refuse. */
export async function testJobType(
  type: ModuleJobType,
  payload: object,
  options: TestJobOptions = {},
): Promise<TestJobOutcome> {
  const definition = type[JOB_TYPE_MARK];
  const problems = definitionProblems(definition);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const input = JSON.parse(JSON.stringify(payload)) as object;
  const outcome: Pick<TestJobOutcome, 'log' | 'progress'> = { log: [], progress: [] };
  const errors = compileForeignSchema(definition.payload)(input);
  const { targets = 'none' } = definition;
  if (targets !== (options.target?.kind ?? 'none'))
    errors.push({ pointer: '/target', code: 'target', message: `must be of the kind ${targets}` });
  if (errors.length > 0) {
    const message = errors.map((each) => `${each.pointer || '/'} ${each.message}`).join('; ');
    return {
      ...outcome,
      status: 'refused',
      result: null,
      failure: { code: 'invalid_request', message, retryable: false },
    };
  }
  const cancel = new AbortController();
  const { cancelAfterMs, outboundAllow = [] } = options;
  if (cancelAfterMs === 0) cancel.abort();
  const timer = cancelAfterMs && setTimeout(() => cancel.abort(), cancelAfterMs);
  const timeoutMs = definition.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const timeout = AbortSignal.timeout(timeoutMs);
  const guarded = createGuardedHttp({
    allow: outboundAllow,
    ownEndpoints: createOwnEndpoints([]),
  });
  try {
    const signal = AbortSignal.any([cancel.signal, timeout]);
    const tools = testTools(outcome, options, { signal, guarded });
    const result = await runModule(definition, input, tools);
    if (Buffer.byteLength(JSON.stringify(result)) > MAX_RESULT_BYTES)
      throw new JobFailure(
        'result_too_large',
        `The result has more than ${MAX_RESULT_BYTES} bytes`,
        { retryable: false },
      );
    return { ...outcome, status: 'succeeded', result, failure: null };
  } catch (error) {
    if (cancel.signal.aborted)
      return { ...outcome, status: 'cancelled', result: null, failure: null };
    const thrown = timeout.aborted
      ? new JobFailure('timed_out', `The attempt took longer than ${timeoutMs} ms`)
      : error;
    return { ...outcome, status: 'failed', result: null, ...failureOf(thrown) };
  } finally {
    clearTimeout(timer);
    await guarded.close();
  }
}

function failureOf(error: unknown): Pick<TestJobOutcome, 'failure' | 'error'> {
  if (error instanceof JobFailure) {
    const { code, message, retryable, retryAfterMs } = error;
    return {
      failure: { code, message, retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) },
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { failure: { code: 'unexpected', message, retryable: true }, error };
}

function testTools(
  { log, progress }: Pick<TestJobOutcome, 'log' | 'progress'>,
  {
    attempt = 1,
    target = null,
    http,
    inventory = {},
  }: Omit<TestJobOptions, 'target'> & {
    target?: JobTarget | null;
  },
  { signal, guarded }: { signal: AbortSignal; guarded: ReturnType<typeof createGuardedHttp> },
): JobTools {
  const missing = (name: string) => () =>
    Promise.reject(new Error(`testJobType needs inventory.${name}`));
  return {
    jobId: 'job_00000000000000000000000000',
    tenantId: 'test',
    attempt,
    startedAt: new Date(),
    source: { kind: 'api', id: null },
    target,
    signal,
    log(level, message, data) {
      if (log.length < MAX_LOG_LINES)
        log.push({ level, message: logText(message), data: logData(data) });
    },
    progress: (percent, message) => void progress.push(progressOf(percent, message)),
    http: http
      ? { request: async (request) => answerOf(await http(request)) }
      : createHttpTool(guarded, signal),
    inventory: {
      get: missing('get'),
      list: missing('list'),
      plan: missing('plan'),
      apply: missing('apply'),
      ...inventory,
    },
  };
}

const answerOf = (answer: Partial<HttpResponse>): HttpResponse => ({
  status: 200,
  headers: {},
  body: '',
  truncated: false,
  durationMs: 0,
  ...answer,
});
