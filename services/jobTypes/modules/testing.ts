/**
 * `holdfast/job-type/testing`: runs a job type without Temporal, PostgreSQL or a server of Holdfast.
 */
import { hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { MAX_LOG_LINES, type JobProgress } from '../../../domain/jobs/jobs.ts';
import { logData, logText, progressOf } from '../../../domain/jobs/logLines.ts';
import { checkArtifactLimits } from '../../../domain/runners/artifacts.ts';
import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { createGuardedHttp } from '../../../platform/guardedHttp.ts';
import { createOwnEndpoints } from '../../../platform/ownEndpoints.ts';
import { compileForeignSchema } from '../../../platform/foreignSchema.ts';
import { serializeResult } from '../../shared/serializeResult.ts';
import { DEFAULT_TIMEOUT_MS, definitionProblems } from './definition.ts';
import { createArtifactTool } from './artifactTool.ts';
import { createHttpTool } from './httpTool.ts';
import {
  JOB_TYPE_MARK,
  type HttpRequest,
  type HttpResponse,
  type InventoryTools,
  type JobTarget,
  type JobTools,
  type JobTypeDefinition,
  type LogLevel,
  type ModuleJobType,
  type StoredArtifact,
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
  /** Values of the named secrets, by the names under which the type reads them. */
  secrets?: Readonly<Record<string, string>>;
};

export type TestJobOutcome = {
  /** `refused`: the payload is not valid, so there would be no job. */
  status: 'succeeded' | 'failed' | 'cancelled' | 'refused';
  result: object | null;
  failure: { code: string; message: string; retryable: boolean; retryAfterMs?: number } | null;
  log: { level: LogLevel; message: string; data: object | null }[];
  /** Every report, in order. */
  progress: JobProgress[];
  /** What it stored, in order; a name is stored once. */
  artifacts: { name: string; content: Buffer }[];
  /** What `run` threw if that was no `JobFailure`. */
  error?: unknown;
};

type Reported = Pick<TestJobOutcome, 'log' | 'progress' | 'artifacts'>;

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
  const outcome: Reported = { log: [], progress: [], artifacts: [] };
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
    const secrets = testSecrets(definition, options.secrets);
    const tools = { ...testTools(outcome, options, { signal, guarded }), secrets };
    const result = await runModule(definition, input, tools);
    serializeResult(result);
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
  const message = errorMessage(error);
  return { failure: { code: 'unexpected', message, retryable: true }, error };
}

function testTools(
  { log, progress, artifacts }: Reported,
  {
    attempt = 1,
    target = null,
    http,
    inventory = {},
  }: Omit<TestJobOptions, 'target'> & {
    target?: JobTarget | null;
  },
  { signal, guarded }: { signal: AbortSignal; guarded: ReturnType<typeof createGuardedHttp> },
): Omit<JobTools, 'secrets'> {
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
    artifact: createArtifactTool((file) => storeTestFile(artifacts, file), signal),
  };
}

/** What the type asks for. Error: `JobFailure('secret_missing')`, as for an attempt without the secret. */
function testSecrets(
  { secrets: wanted = {} }: JobTypeDefinition,
  values: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const missing = Object.keys(wanted).filter((name) => !Object.hasOwn(values, name));
  if (missing.length > 0)
    throw new JobFailure('secret_missing', `testJobType needs secrets.${missing.join(', ')}`, {
      retryable: false,
    });
  return Object.fromEntries(Object.keys(wanted).map((name) => [name, values[name] ?? '']));
}

async function storeTestFile(
  artifacts: TestJobOutcome['artifacts'],
  { name, source }: { name: string; source: Readable },
): Promise<StoredArtifact> {
  const others = artifacts
    .filter((each) => each.name !== name)
    .map(({ content }) => ({ bytes: content.length }));
  checkArtifactLimits(others, 0);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    checkArtifactLimits(others, bytes);
    chunks.push(chunk);
  }
  const content = Buffer.concat(chunks);
  const known = artifacts.find((each) => each.name === name);
  if (known) known.content = content;
  else artifacts.push({ name, content });
  return { name, bytes, sha256: hash('sha256', content, 'hex') };
}

const answerOf = (answer: Partial<HttpResponse>): HttpResponse => ({
  status: 200,
  headers: {},
  body: '',
  truncated: false,
  durationMs: 0,
  ...answer,
});
