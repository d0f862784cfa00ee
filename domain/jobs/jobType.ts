import type { TObject } from 'typebox';
import type { Caller } from '../shared/caller.ts';
import type { AppError } from '../shared/errors.ts';
import type { FailedResponse, JobSource, LogLevel } from './jobs.ts';
import type { TypeAccess } from '../runners/definition.ts';
import type { Permission } from '../access/permissions.ts';
import type { RemoteTypeDefinition } from '../runners/definition.ts';
import { DEFAULT_RETRY, withPolicy, type RetryPolicy } from './retry.ts';
import type { Target, TargetKind } from './targets.ts';

/**
 * Where the work of a job runs. `inline`: inside the workflow task, for short work without network
 * access. `activity`: an activity with heartbeats on its own task queue, for long or network work.
 * `delivery`: an activity with its own concurrency limit, for many short requests to slow servers.
 * `workflow`: a child workflow, whose steps are visible in Temporal. `remote`: an activity of a runner,
 * which has neither the database nor the payload, and reports through the API.
 */
export type Lane = 'inline' | 'activity' | 'delivery' | 'workflow' | 'remote';

/**
 * True for lanes whose jobs run only while they hold a slot: the long ones. Tenants share the
 * slots (domain/dispatch/shares.ts). Inline attempts are short; deliveries have other slots.
 */
export const needsSlot = (lane: Lane): boolean =>
  lane === 'activity' || lane === 'workflow' || lane === 'remote';

/** What an attempt knows about itself, and how it reports. */
export type JobTools = {
  /** Number of this attempt; 1 is the first. */
  attempt: number;
  /** The workflow run of the attempt. Run and number together identify an attempt of the job. */
  runId: string;
  /** When the first attempt started. */
  startedAt: Date;
  jobId: string;
  /** What created the job. */
  source: JobSource;
  /** What the job is about, as it is now; null if its type has no target. */
  target: Target | null;
  /** The caller that the job acts for, at the job's tenant, with its rights as of this attempt. */
  caller: Caller;
  /**
   * The caller with its rights as of now, for attempts that act late. Error:
   * `JobFailure('permission_lost')`.
   */
  currentCaller(): Promise<Caller>;
  /** Aborted when the job is cancelled, times out or its worker stops. */
  signal: AbortSignal;
  log(level: LogLevel, message: string, data?: object): void;
  progress(percent: number, message?: string): void;
};

/**
 * The child workflow of a job of the lane `workflow`. `record` is the id of the record that it
 * works on. The input has ids only.
 */
export type ChildWorkflowSpec = {
  workflow: string;
  workflowId: string;
  input: object;
  summary: string;
  record: string;
};

/** The job of a step, and the caller that it acts for. */
export type StepContext = Pick<JobTools, 'jobId' | 'caller' | 'source'> & { payload: object };

type AttemptBasedType<P extends object> = {
  lane: Exclude<Lane, 'workflow' | 'remote'>;
  /**
   * Does the work and returns the result, which must serialise to a JSON object. Error:
   * `JobFailure`.
   */
  run(payload: P, tools: JobTools): Promise<object>;
};

type WorkflowBasedType<P extends object> = {
  lane: 'workflow';
  /** Creates the record of the work. It may run more than once. Error: `JobFailure`. */
  prepare(payload: P, context: Omit<StepContext, 'payload'>): Promise<ChildWorkflowSpec>;
  /** Returns the result after all steps have completed. */
  result(jobId: string): Promise<object>;
};

/** The work of runners. Several definitions may run at a time: the accepted one of each digest. */
type RunnerBasedType = {
  lane: 'remote';
  /** The pool whose runners run it. */
  pool: string;
  /** What was accepted last. */
  digest: string;
  /** Identifies what was accepted (domain/runners/shape.ts); null for a type that waits. */
  shape: string | null;
  definition: RemoteTypeDefinition;
  /** The payload schemas with secret fields of all its versions that are known: jobs have run with them. */
  secretSchemas: readonly object[];
  /** False for a type that is disabled: no job of it is created or started. */
  isEnabled: boolean;
};

export type JobType<P extends object = object> = JobTypeFields<P> &
  (AttemptBasedType<P> | WorkflowBasedType<P> | RunnerBasedType);

/** A job type that runners run. */
export type RemoteJobType = JobTypeFields<object> & RunnerBasedType;

type JobTypeFields<P extends object> = {
  name: string;
  summary: string;
  payload: TObject;
  /** Permission that creating such a job needs besides `job:write`. */
  permission: Permission | null;
  /** Whether `job:write` is enough, or a role must name the type. */
  access: TypeAccess;
  /**
   * What such a job is about. Requests name the record, the job belongs to it, and the permissions for
   * the job are needed there.
   */
  targets: TargetKind;
  /** The operation that creates such jobs; null when `POST /api/jobs` does. */
  createdOnlyBy: string | null;
  /** False: jobs of this type emit no events. */
  emitsEvents: boolean;
  /** True: the type checks the rights of its caller itself, record by record. */
  authorizesItself: boolean;
  retry: RetryPolicy;
  /** Limit of one attempt or step, in milliseconds. An inline attempt must end well within 10 s. */
  timeoutMs: number;
  /**
   * False for work that must not be done twice: such a job has one attempt unless its retry policy
   * says otherwise, and a lost attempt ends it.
   */
  isRepeatable(payload: P): boolean;
  /** The payload as all callers see it. Other callers than its author see less. */
  redact(payload: P): P;
  /**
   * Checks what the schema cannot say of the payload of a job at the caller's tenant, when it is
   * saved. Returns what the installation lacks at present, so that such jobs would fail. Error: an
   * `AppError`, with pointers into the payload, for a payload that the type always refuses.
   */
  check?(payload: P, caller: Caller): readonly AppError[] | Promise<readonly AppError[]>;
};

type DefaultedFields =
  | 'permission'
  | 'access'
  | 'targets'
  | 'redact'
  | 'isRepeatable'
  | 'createdOnlyBy'
  | 'emitsEvents'
  | 'authorizesItself';
type JobTypeSpec<P extends object> = Omit<JobTypeFields<P>, DefaultedFields | 'retry'> &
  Partial<Pick<JobTypeFields<P>, DefaultedFields>> & { retry?: Partial<RetryPolicy> } & (
    AttemptBasedType<P> | WorkflowBasedType<P>
  );

/**
 * Declares a job type. Payloads are checked against the schema `payload` before `run` gets them.
 */
export const defineJobType = <P extends object>(
  spec: JobTypeSpec<P>,
): JobTypeFields<P> & (AttemptBasedType<P> | WorkflowBasedType<P>) => ({
  permission: null,
  access: 'open',
  targets: 'none',
  createdOnlyBy: null,
  emitsEvents: true,
  authorizesItself: false,
  isRepeatable: () => true,
  redact: (payload) => payload,
  ...spec,
  retry: withPolicy(DEFAULT_RETRY, spec.retry),
});

/**
 * Permissions that a caller needs at the job's target, or at its tenant, to create the job. Internal job types need no
 * `job:write`: the operation that creates them has a permission of its own.
 */
export const permissionsToCreate = ({ createdOnlyBy, permission }: JobType): Permission[] => [
  ...(createdOnlyBy === null ? ['job:write' as const] : []),
  ...(permission ? [permission] : []),
];

/**
 * Permissions that the caller must still hold when the job runs. Types of the lane `workflow` have
 * operations besides `POST /api/jobs`, and these need the type's own permission only.
 */
export const permissionsToRun = (type: JobType): Permission[] =>
  type.lane === 'workflow' ? (type.permission ? [type.permission] : []) : permissionsToCreate(type);

/** An expected failure of a job type. The retry policy may exclude its `code` from retries. */
export class JobFailure extends Error {
  readonly code: string;
  readonly retryable: boolean;
  /** Delay before the retry that the other server requested, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** What the other server answered. */
  readonly response: FailedResponse | undefined;

  constructor(
    code: string,
    message: string,
    options: { retryable?: boolean; retryAfterMs?: number; response?: FailedResponse } = {},
  ) {
    super(message);
    this.name = 'JobFailure';
    this.code = code;
    this.retryable = options.retryable ?? true;
    this.retryAfterMs = options.retryAfterMs;
    this.response = options.response;
  }
}
