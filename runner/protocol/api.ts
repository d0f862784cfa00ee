import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request as send, type Dispatcher } from 'undici';
import { MAX_ARTIFACT_SECONDS } from '../../domain/runners/artifacts.ts';
import type {
  AliveReport,
  AnnouncedState,
  Announcement,
  BeginRequest,
  EndAnswer,
  EndRequest,
  LinesAnswer,
  NoAttempt,
} from '../../domain/runners/protocol.ts';
import { errorMessage } from '../../domain/shared/errorMessage.ts';

/** What a runner reads of the answers: see the schemas in `api/runners`. */
export type AnnounceAnswer = {
  taskQueue: string;
  namespace: string;
  everySeconds: number;
  types: AnnouncedState[];
};

export type StartedAttempt = {
  outcome: 'started';
  attempt: number;
  attemptToken: string;
  payload: Record<string, unknown>;
  target: { kind: 'site' | 'device'; id: string; name: string } | null;
  secrets: Record<string, string>;
  timeoutMs: number;
  leaseMs: number;
  maxAttempts: number;
  remainingLines: number;
};

export type BeginAnswer = StartedAttempt | NoAttempt;

/**
 * The API has refused a request, or could not be reached (`status` 0). `isOfProxy`: the answer is none of Holdfast, but of
 * a proxy or a load balancer, which says nothing about the attempt or the runner.
 */
export class RunnerApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number | undefined;
  readonly isOfProxy: boolean;

  constructor(
    status: number,
    code: string,
    message: string,
    {
      retryAfterMs,
      isOfProxy = false,
    }: { retryAfterMs?: number; isOfProxy?: boolean | undefined } = {},
  ) {
    super(message);
    this.name = 'RunnerApiError';
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.isOfProxy = isOfProxy;
  }

  /** True if the same request may succeed later. With 501, the installation lacks what it needs. */
  get isTransient(): boolean {
    if (this.isOfProxy) return true;
    const isServerError = this.status >= 500 && this.status !== 501;
    return this.status < 400 || isServerError || [408, 429].includes(this.status);
  }
}

/** True for an error of a request that was never sent, and never can be. */
const isNotSendable = (error: unknown): boolean =>
  error instanceof URIError || (error as { code?: unknown }).code === 'UND_ERR_INVALID_ARG';

/** A payload and secrets have a few megabytes at most. */
const MAX_ANSWER_BYTES = 8 * 1_048_576;
const TIMEOUT_MS = 15_000;
/** The API waits as long, as long as something arrives. */
const UPLOAD_TIMEOUT_MS = MAX_ARTIFACT_SECONDS * 1_000;
/** An announcement can have some megabytes. */
const ANNOUNCE_TIMEOUT_MS = 60_000;

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;

async function readBody(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new Error('The answer of the API is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

type Headers = Dispatcher.ResponseData['headers'];

const PROBLEM_TYPE = /^application\/problem\+json\b/i;

/** A problem of Holdfast: a document with a code. Undefined for other answers, such as the page of a proxy. */
function readProblem(type: unknown, text: string) {
  if (typeof type !== 'string' || !PROBLEM_TYPE.test(type)) return undefined;
  try {
    const { code, detail, title } = JSON.parse(text) as Record<string, unknown>;
    return typeof code === 'string' ? { code, detail: detail ?? title } : undefined;
  } catch {
    return undefined;
  }
}

function refusalOf(status: number, text: string, headers: Headers): RunnerApiError {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const retry = Number.isFinite(seconds) ? { retryAfterMs: seconds * 1_000 } : {};
  const problem = readProblem(headers['content-type'], text);
  if (!problem)
    return new RunnerApiError(status, `http_${status}`, `A proxy answers ${status}`, {
      ...retry,
      isOfProxy: true,
    });
  const { code, detail } = problem;
  const message = `The API answers ${status} ${code}`;
  return new RunnerApiError(
    status,
    code,
    typeof detail === 'string' ? `${message}: ${detail}` : message,
    retry,
  );
}

/**
 * Repeats `work` while it fails with a transient `RunnerApiError`, with growing pauses. Errors: any other;
 * the last one when `until` (as `performance.now()`) is over; the reason of `signal`. With `awayMs`, `until` is at
 * least so much later than the last moment at which the API was there: it was busy (429), or had taken what was sent
 * for as long.
 */
export async function retryTransient<T>(
  work: () => Promise<T>,
  { signal, awayMs = 0, ...limit }: { until: number; signal?: AbortSignal; awayMs?: number },
): Promise<T> {
  let { until } = limit;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const startedAt = performance.now();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RunnerApiError) || !error.isTransient) throw error;
      const isBusy = error.status === 429 && !error.isOfProxy;
      const wasThere = isBusy || performance.now() - startedAt >= awayMs;
      if (wasThere) until = Math.max(until, performance.now() + awayMs);
      const waitMs = Math.max(pauseMs * (0.75 + Math.random() / 2), error.retryAfterMs ?? 0);
      if (performance.now() + waitMs > until) throw error;
      await sleep(waitMs, undefined, { signal });
    }
  }
}

export type RunnerApi = ReturnType<typeof createRunnerApi>;

type Connection = {
  url: string;
  token: string;
  /** The token that counts now; undefined if it is not known. */
  readToken?: () => Promise<string | undefined>;
};

/**
 * The runner API of Holdfast. Each call makes one request, and fails with `RunnerApiError`. If the token is refused
 * and has been replaced, the call makes the request once more, with the new one.
 */
export function createRunnerApi({ url, readToken, ...connection }: Connection) {
  let { token } = connection;
  const agent = new Agent({
    connect: { timeout: TIMEOUT_MS },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    keepAliveTimeout: 10_000,
    connections: 64,
  });

  type Request = {
    method?: 'POST' | 'PUT';
    path: string;
    query?: Record<string, string | number>;
    headers?: Record<string, string>;
    body?: string | NodeJS.ReadableStream;
    timeoutMs?: number;
    signal?: AbortSignal;
  };

  async function withToken<T>(attempt: () => Promise<T>): Promise<T> {
    const sent = token;
    try {
      return await attempt();
    } catch (error) {
      if (!readToken || !(error instanceof RunnerApiError) || error.status !== 401) throw error;
      token = (await readToken()) ?? token;
      if (token === sent) throw error;
      return attempt();
    }
  }

  async function call({ method = 'POST', path, query, headers, body, ...request }: Request) {
    const timeout = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS);
    try {
      const answer = await send(`${url}/api/runner/${path}`, {
        method,
        dispatcher: agent,
        ...(query && { query }),
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(body !== undefined && { body: body as string }),
        signal: request.signal ? AbortSignal.any([timeout, request.signal]) : timeout,
      });
      const text = await readBody(answer.body);
      if (answer.statusCode === 204) return undefined;
      // A page of a proxy is no JSON.
      if (answer.statusCode < 300) return JSON.parse(text) as unknown;
      throw refusalOf(answer.statusCode, text, answer.headers);
    } catch (error) {
      if (error instanceof RunnerApiError) throw error;
      const reason = errorMessage(error);
      if (isNotSendable(error))
        throw new RunnerApiError(400, 'not_sendable', `The request cannot be sent: ${reason}`);
      throw new RunnerApiError(0, 'api_unreachable', `The API cannot be reached: ${reason}`);
    }
  }

  const post = (
    path: string,
    body: object,
    headers: Record<string, string> = {},
    timeoutMs = TIMEOUT_MS,
  ) =>
    withToken(() =>
      call({
        path,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        timeoutMs,
      }),
    );

  const ofAttempt = (attemptToken: string) => ({ 'attempt-token': attemptToken });

  return {
    announce: (announcement: Announcement) =>
      post('announce', announcement, {}, ANNOUNCE_TIMEOUT_MS) as Promise<AnnounceAnswer>,

    alive: (runner: AliveReport) => post('alive', runner) as Promise<{ types: AnnouncedState[] }>,

    leave: (runner: { runnerId: string; pool: string }) => post('leave', runner) as Promise<void>,

    begin: (jobId: string, body: BeginRequest) =>
      post(`jobs/${encodeURIComponent(jobId)}/begin`, body) as Promise<BeginAnswer>,

    /** Sends lines as NDJSON; `firstLine` counts from 1. */
    lines: (
      jobId: string,
      attemptToken: string,
      query: { firstLine: number; progress?: number; progressMessage?: string },
      body: string,
      timeoutMs = TIMEOUT_MS,
    ) =>
      withToken(() =>
        call({
          path: `jobs/${encodeURIComponent(jobId)}/lines`,
          query,
          headers: { 'content-type': 'application/x-ndjson', ...ofAttempt(attemptToken) },
          body,
          timeoutMs,
        }),
      ) as Promise<LinesAnswer>,

    /** Sends a file. Errors beside `RunnerApiError`: it cannot be read. */
    artifact: (
      jobId: string,
      attemptToken: string,
      { name, file }: { name: string; file: string },
      signal: AbortSignal,
    ): Promise<void> =>
      withToken(async () => {
        const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
        const { size } = await handle.stat();
        await call({
          method: 'PUT',
          path: `jobs/${encodeURIComponent(jobId)}/artifacts/${encodeURIComponent(name)}`,
          headers: {
            'content-type': 'application/octet-stream',
            'content-length': String(size),
            ...ofAttempt(attemptToken),
          },
          body: handle.createReadStream(),
          timeoutMs: UPLOAD_TIMEOUT_MS,
          signal,
        });
      }),

    end: (jobId: string, attemptToken: string, end: EndRequest) =>
      post(
        `jobs/${encodeURIComponent(jobId)}/end`,
        end,
        ofAttempt(attemptToken),
      ) as Promise<EndAnswer>,

    close: () => agent.destroy(),
  };
}
