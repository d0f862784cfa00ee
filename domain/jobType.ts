import type { TObject } from 'typebox';
import type { Caller } from './shared/caller.ts';
import type { JobSource, LogLevel } from './jobs/jobs.ts';
import type { Permission } from './access/permissions.ts';
import { DEFAULT_RETRY, type RetryPolicy } from './jobs/retry.ts';

/**
 * Where an attempt runs. `inline`: short work without a network, one round trip to Temporal.
 * `activity`: long work or work that talks to others, with heartbeats, on its own task queue.
 * `delivery`: the same for short exchanges, of which many wait for somebody else at once; it has room of its own.
 * `steps`: a workflow of its own, whose steps show one by one.
 */
export type Lane = 'inline' | 'activity' | 'delivery' | 'steps';

/** What an attempt may do to the world beside its own business. */
export type JobTools = {
  /** Number of this attempt, 1 is the first. */
  attempt: number;
  /** The run that makes it: together with the number it names this attempt among all of the job. */
  runId: string;
  /** When the first attempt began. */
  startedAt: Date;
  jobId: string;
  /** What asked for the job. */
  source: JobSource;
  /** Whom the job acts for, at the job's tenant, with the rights held when the attempt began. */
  caller: Caller;
  /** Aborted when the job is cancelled, times out or its worker stops. */
  signal: AbortSignal;
  log(level: LogLevel, message: string, data?: object): void;
  progress(percent: number, message?: string): void;
};

/** The workflow that does the work of a job in steps; `record` is what it is about. Inputs carry ids only. */
export type SteppedRun = {
  workflow: string;
  workflowId: string;
  input: object;
  summary: string;
  record: string;
};

/** For whom, and for which job, steps are taken. */
export type StepsOf = Pick<JobTools, 'jobId' | 'caller' | 'source'> & { payload: object };

type Attempted<P extends object> = {
  lane: Exclude<Lane, 'steps'>;
  /** The result must serialise to a JSON object. A thrown `JobFailure` names its code. */
  run(payload: P, tools: JobTools): Promise<object>;
};

type Stepped<P extends object> = {
  lane: 'steps';
  /** Prepares the record of the work; may be repeated. A thrown `JobFailure` names its code. */
  begin(payload: P, of: Omit<StepsOf, 'payload'>): Promise<SteppedRun>;
  /** The result, when all steps are done. */
  result(jobId: string): Promise<object>;
};

export type JobType<P extends object = object> = Declared<P> & (Attempted<P> | Stepped<P>);

type Declared<P extends object> = {
  name: string;
  summary: string;
  payload: TObject;
  /** Needed beside `job:write` to create such a job directly. */
  permission: Permission | null;
  /** The operation that makes such jobs; null where callers create them directly. */
  onlyThrough: string | null;
  /** Its jobs emit no events. */
  quiet: boolean;
  /** It checks by itself what whoever it acts for may do, where it does it. */
  checksRights: boolean;
  retry: RetryPolicy;
  /** Limit of one attempt, or one step, in milliseconds; an inline attempt must end well within 10 s. */
  timeoutMs: number;
  /** The payload as others may see it: secrets masked. */
  redact(payload: P): P;
};

type Given = 'permission' | 'redact' | 'onlyThrough' | 'quiet' | 'checksRights';
type JobTypeSpec<P extends object> = Omit<Declared<P>, Given | 'retry'> &
  Partial<Pick<Declared<P>, Given>> & { retry?: Partial<RetryPolicy> } & (
    Attempted<P> | Stepped<P>
  );

/** Declares a job type. The payload has been checked against `payload` before `run` sees it. */
export const jobType = <P extends object>(spec: JobTypeSpec<P>): JobType<P> => ({
  permission: null,
  onlyThrough: null,
  quiet: false,
  checksRights: false,
  redact: (payload) => payload,
  ...spec,
  retry: { ...DEFAULT_RETRY, ...spec.retry },
});

/**
 * What whoever a job acts for must hold where it stands. What only an operation of its own makes is allowed by that
 * operation's permission.
 */
export const permissionsFor = ({ onlyThrough, permission }: JobType): Permission[] => [
  ...(onlyThrough === null ? ['job:write' as const] : []),
  ...(permission ? [permission] : []),
];

/**
 * The same while a job runs. What is done in steps has operations of its own beside `POST /api/jobs`, which ask for its permission
 * alone.
 */
export const permissionsToRun = (type: JobType): Permission[] =>
  type.lane === 'steps' ? (type.permission ? [type.permission] : []) : permissionsFor(type);

/** A failure that a job type expects: `code` decides about the retry. */
export class JobFailure extends Error {
  readonly code: string;
  readonly retryable: boolean;
  /** Wait that the other side asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    message: string,
    options: { retryable?: boolean; retryAfterMs?: number } = {},
  ) {
    super(message);
    this.name = 'JobFailure';
    this.code = code;
    this.retryable = options.retryable ?? true;
    this.retryAfterMs = options.retryAfterMs;
  }
}
