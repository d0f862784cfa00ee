import { inspect } from 'node:util';
import { attemptMasker } from '../../../domain/jobs/attemptMasker.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { ERROR_CODE, LOG_LEVELS } from '../../../domain/jobs/jobs.ts';
import { secretValuesIn } from '../../../domain/jobs/secretFields.ts';
import type { FailedResponse } from '../../../domain/jobs/jobs.ts';
import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import type { Masker } from '../../../domain/shared/masker.ts';
import { responseExcerpt } from '../../../domain/shared/responseExcerpt.ts';
import { isDeeperThan, MAX_DEPTH } from '../../../platform/jsonDepth.ts';
import { assertResultDepth } from '../../shared/serializeResult.ts';
import type { JobTools, JobTypeDefinition } from './jobType.ts';

/** How long the work of an aborted attempt may take to end. */
const STOP_MS = 5_000;

/** Shorter secrets, and shorter forms of secrets, are part of ordinary words. */
const MIN_MASKED_CHARS = 4;

const CODE = new RegExp(ERROR_CODE);

/**
 * Runs a module: its log, progress, result and failure have the forms that records need, and contain
 * no secret of the payload or of the definition. After its end the tools do nothing. Errors: `JobFailure`; the reason of
 * `signal`, at the latest `stopMs` after it was aborted; what the module throws else.
 */
export async function runModule(
  { payload: schema, run }: JobTypeDefinition,
  payload: object,
  tools: JobTools,
  { stopMs = STOP_MS }: { stopMs?: number } = {},
): Promise<object> {
  const masker = attemptMasker(
    { named: Object.values(tools.secrets), ofPayload: secretValuesIn(schema, payload) },
    { minChars: MIN_MASKED_CHARS },
  );
  const { text: maskText } = masker;
  const mask = (value: object): object => masker.json(value) as object;
  let isOver = false;
  const own: JobTools = {
    ...tools,
    log(level, message: unknown, data) {
      if (isOver) return;
      const known = LOG_LEVELS.find((each) => each === level) ?? 'info';
      tools.log(known, maskText(asText(message)), asData(data, mask));
    },
    progress(percent, message?: unknown) {
      if (isOver) return;
      if (message === undefined) tools.progress(percent);
      else tools.progress(percent, maskText(asText(message)));
    },
    http: { request: (request) => whileRunning(() => tools.http.request(request)) },
    inventory: {
      get: (...args) => whileRunning(() => tools.inventory.get(...args)),
      list: (...args) => whileRunning(() => tools.inventory.list(...args)),
      plan: (...args) => whileRunning(() => tools.inventory.plan(...args)),
      apply: (...args) => whileRunning(() => tools.inventory.apply(...args)),
    },
    artifact: (...args) => whileRunning(() => tools.artifact(...args)),
  };
  const whileRunning = <T>(use: () => Promise<T>): Promise<T> =>
    isOver ? Promise.reject(new JobFailure('attempt_ended', 'The attempt has ended')) : use();
  try {
    const work = (async () => run(structuredClone(payload), own))();
    const onLeft = () =>
      tools.log('warn', `The module has not stopped ${stopMs / 1_000} s after its signal`);
    return mask(asResult(await endsSoonAfter(work, tools.signal, { stopMs, onLeft })));
  } catch (error) {
    if (tools.signal.aborted && error === tools.signal.reason) throw error;
    throw maskedError(error, masker);
  } finally {
    isOver = true;
  }
}

/** Waits for `work`; from the end of `signal` on, no longer than `stopMs`. */
function endsSoonAfter<T>(
  work: Promise<T>,
  signal: AbortSignal,
  { stopMs, onLeft }: { stopMs: number; onLeft: () => void },
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => {
      onLeft();
      reject(signal.reason as Error);
    }, stopMs);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  });
}

/** Modules in JavaScript may log anything. */
const asText = (value: unknown): string => (typeof value === 'string' ? value : inspect(value));

/** The data of a line as JSON; what is not JSON is left out later. */
function asData(data: unknown, mask: (value: object) => object): object | undefined {
  if (data === undefined || data === null) return undefined;
  if (typeof data !== 'object') return mask({ value: data });
  try {
    const json = JSON.parse(JSON.stringify(data)) as object;
    if (isDeeperThan(MAX_DEPTH, json))
      return { leftOut: `is nested deeper than ${MAX_DEPTH} levels` };
    return mask(json);
  } catch {
    return { leftOut: 'not JSON' };
  }
}

/** The result as JSON. Error: `JobFailure('invalid_result')`. */
function asResult(result: unknown): object {
  if (result === undefined || result === null) return {};
  if (!isJsonObject(result))
    throw new JobFailure('invalid_result', 'The result must be an object', { retryable: false });
  try {
    const json = JSON.parse(JSON.stringify(result)) as object;
    assertResultDepth(json);
    return json;
  } catch (error) {
    if (error instanceof JobFailure) throw error;
    const reason = errorMessage(error);
    throw new JobFailure('invalid_result', `The result is not JSON: ${reason}`, {
      retryable: false,
    });
  }
}

type FailureLike = Pick<JobFailure, 'message'> & {
  code: unknown;
  retryable: unknown;
  retryAfterMs: unknown;
  response?: unknown;
};

/** A package may have a copy of `JobFailure`, so its name decides. */
const isFailure = (error: unknown): error is FailureLike =>
  error instanceof Error && error.name === 'JobFailure' && 'code' in error;

/** The response of a failure with the limits of `http.request`; undefined if it has not the form of one. */
function maskedResponse(response: unknown, masker: Masker): FailedResponse | undefined {
  if (typeof response !== 'object' || response === null) return undefined;
  const { status, contentType, body, truncated } = response as Record<string, unknown>;
  if (typeof status !== 'number' || !Number.isInteger(status)) return undefined;
  const text = typeof body === 'string' ? body : '';
  // A body that is cut may end within a secret.
  const isCut = truncated === true;
  const whole = isCut ? text.slice(0, text.length - masker.unfinished(text)) : text;
  const excerptOf = (value: string, cut: boolean) =>
    responseExcerpt({ body: masker.text(value), truncated: cut });
  return {
    status,
    contentType: typeof contentType === 'string' ? excerptOf(contentType, false).body : null,
    ...excerptOf(whole, isCut),
  };
}

function maskedError(error: unknown, masker: Masker): unknown {
  if (isFailure(error)) {
    const { code, message, retryable, retryAfterMs } = error;
    const isCode = typeof code === 'string' && CODE.test(code);
    const response = maskedResponse(error.response, masker);
    return new JobFailure(isCode ? code : 'failed', masker.text(message), {
      retryable: retryable !== false,
      ...(typeof retryAfterMs === 'number' && retryAfterMs >= 0 && { retryAfterMs }),
      ...(response && { response }),
    });
  }
  if (!(error instanceof Error)) return new Error(masker.text(String(error)));
  const masked = new Error(masker.text(error.message));
  masked.name = error.name;
  masked.stack = masker.text(error.stack ?? masked.message);
  return masked;
}
