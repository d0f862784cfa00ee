/**
 * `holdfast/job-type`: what a module with job types imports. Names and meanings are frozen for the
 * API version that a type declares; docs/job-type-modules.md describes them.
 */
import type { Static, TSchema } from 'typebox';
import type { Permission } from '../../../domain/access/permissions.ts';
import type {
  Mutation,
  PlanConflict,
  PlanError,
  PlanWarning,
} from '../../../domain/inventory/planning.ts';
import type { JobSource, LogLevel } from '../../../domain/jobs/jobs.ts';
import type { TypeAccess, WantedSecrets } from '../../../domain/runners/definition.ts';
import type { RetryPolicy } from '../../../domain/jobs/retry.ts';
import type { TargetKind } from '../../../domain/jobs/targets.ts';
import type { OutboundRequest, OutboundResponse } from '../../../platform/guardedHttp.ts';

export { Type, type Static } from 'typebox';
export { JobFailure } from '../../../domain/jobs/jobType.ts';
export type { JobSource, LogLevel, Mutation, PlanConflict, PlanError, PlanWarning, RetryPolicy };

/** The version of this API. */
export const API_VERSION = 1;

/**
 * A request to another server: `GET` by default, http or https, without credentials in the URL. It
 * takes at most `timeoutMs` (15,000 by default, 120,000 at most), and up to `maxBodyBytes` of the body
 * are read (1 MiB by default, 16 MiB at most). Redirects are not followed.
 */
export type HttpRequest = Pick<OutboundRequest, 'url' | 'body' | 'maxBodyBytes'> &
  Partial<Pick<OutboundRequest, 'method' | 'headers' | 'timeoutMs'>>;

/**
 * Every status is an answer, also 404 and 500. `headers` are those that describe the body, `etag`,
 * `date`, `server` and `retry-after`; `truncated` is true if the body was longer than `maxBodyBytes`.
 */
export type HttpResponse = OutboundResponse;

/** A record of the inventory, with the fields of the API. */
export type InventoryRecord = { id: string; version: number } & Record<string, unknown>;

/** One record that changes. Records that the caller may not read are only counted. */
export type InventoryChange = {
  action: 'create' | 'update' | 'delete';
  resource: string;
  id: string;
  version: number | null;
};

/** What changes would do. Each finding has the number of its mutation, from 0. */
export type InventoryPlan = {
  valid: boolean;
  changes: {
    action: 'create' | 'update' | 'delete';
    resource: string;
    /** Null for a record that does not exist yet. */
    id: string | null;
    label: string;
    fields: { field: string; before: unknown; after: unknown }[];
  }[];
  errors: (PlanError & { mutation: number })[];
  conflicts: (PlanConflict & { mutation: number })[];
  warnings: (PlanWarning & { mutation: number })[];
};

/** Which records a list has: those whose field has the value, or one of the values. */
export type InventoryFilter = Readonly<
  Record<string, string | number | boolean | null | readonly (string | number | boolean)[]>
>;

/** The inventory as the caller of the job may use it at the moment of the call. */
export type InventoryTools = {
  /** Reads a record. Error: `JobFailure('not_found')`. */
  get(resource: string, id: string): Promise<InventoryRecord>;
  /** Reads a page of records, newest first; `after` is the `next` of the page before. */
  list(
    resource: string,
    request?: { where?: InventoryFilter; limit?: number; after?: string | undefined },
  ): Promise<{ items: InventoryRecord[]; next: string | null }>;
  /** Plans up to 1,000 mutations in order, and writes nothing. */
  plan(mutations: readonly Mutation[]): Promise<InventoryPlan>;
  /**
   * Applies up to 1,000 mutations, all or none. Changes that an earlier attempt of the job has
   * applied are not applied again: the result is that of the earlier attempt. Errors: `JobFailure`
   * with `change_rejected`, `concurrent_change`, `busy` or `permission_lost`.
   */
  apply(
    mutations: readonly Mutation[],
  ): Promise<{ changes: InventoryChange[]; hiddenChanges: number }>;
};

/** The site or the device that a job is about. `siteId` is the site of a device, if it has one. */
export type JobTarget = {
  kind: 'site' | 'device';
  id: string;
  name: string;
  tenantId: string;
  siteId: string | null;
};

/** A file that was stored. `sha256` of its content, in hexadecimal digits. */
export type StoredArtifact = { name: string; bytes: number; sha256: string };

/** What an attempt knows about itself, and what it can do. */
export type JobTools = {
  jobId: string;
  tenantId: string;
  /** Number of this attempt; 1 is the first. */
  attempt: number;
  /** When the first attempt started. */
  startedAt: Date;
  /** What created the job. */
  source: JobSource;
  /** What the job is about, as it is now; null for a type without `targets`. */
  target: JobTarget | null;
  /** Aborted when the job is cancelled, times out or its worker stops. Pass it to all that waits. */
  signal: AbortSignal;
  log(level: LogLevel, message: string, data?: object): void;
  progress(percent: number, message?: string): void;
  http: {
    /**
     * Sends a request; `signal` ends it. Errors: `JobFailure` with a code such as
     * `connection_failed`, `timed_out` or `address_not_allowed`.
     */
    request(request: HttpRequest): Promise<HttpResponse>;
  };
  inventory: InventoryTools;
  /**
   * Stores a file for those who may read the job, instead of one with this name: text, bytes or a stream
   * of them. A job has up to 20 files of together 64 MiB. Nothing in them is masked. Errors: `JobFailure`
   * with `invalid_artifact`, `limit_reached`, `artifact_not_stored` or `attempt_superseded`.
   */
  artifact(
    name: string,
    content: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  ): Promise<StoredArtifact>;
  /** The values of the secrets that the definition names, as they were when the attempt started. */
  secrets: Readonly<Record<string, string>>;
};

/** What `jobType` takes. */
export type JobTypeDefinition<Schema extends TSchema = TSchema> = {
  apiVersion: typeof API_VERSION;
  /** Two or more words, separated by dots: `acme.site-sync`. */
  name: string;
  summary: string;
  /**
   * The schema of the payload, an object. `x-holdfast-secret: true` marks its secret fields,
   * `x-holdfast-ref: 'devices'` ids of records.
   */
  payload: Schema;
  /** `activity`, which is also the default. */
  lane?: 'activity';
  /** What such a job is about: a `site` or a `device`, which requests name. `none` by default. */
  targets?: TargetKind;
  /** `open`: `job:write` is enough. `granted`, by default: a role must name the type. */
  access?: TypeAccess;
  /** Named secrets that each attempt gets: `{ API_TOKEN: { secret: 'port-audit' } }`. */
  secrets?: WantedSecrets;
  /** Permission that creating such a job needs besides `job:write`. */
  permission?: Permission;
  /** Limit of one attempt: 600,000 by default, 86,400,000 at most. */
  timeoutMs?: number;
  /** What differs from three attempts with growing delays. */
  retry?: Partial<RetryPolicy>;
  /** False for work that must not be done twice; such a job has one attempt. */
  isRepeatable?(payload: Static<Schema>): boolean;
  /** Does the work and returns the result, a JSON object, or nothing. Error: `JobFailure`. */
  run(payload: Static<Schema>, tools: JobTools): Promise<object | undefined>;
};

/** Marks what `jobType` returned; one symbol for all copies of this file. */
export const JOB_TYPE_MARK = Symbol.for('holdfast.job-type');

/** A job type of a module. */
export type ModuleJobType = { readonly [JOB_TYPE_MARK]: JobTypeDefinition };

/** Declares a job type. The module exports it; `HOLDFAST_JOB_TYPES` names the module. */
export const jobType = <Schema extends TSchema>(
  definition: JobTypeDefinition<Schema>,
): ModuleJobType => ({ [JOB_TYPE_MARK]: definition });
