import type { RemoteTypeDefinition } from './definition.ts';

/**
 * Why a queued job of runners waits: its type is disabled; no runner of its pool is alive; none of them has
 * announced the type, or the version of it that is accepted, or the version that was approved for the job; all
 * their slots are in use; or none of these: the tenant has its share of the pool, the type its limit, or the
 * job starts soon.
 */
export const WAIT_REASONS = [
  'type_disabled',
  'no_runner',
  'not_announced',
  'not_accepted',
  'other_digest',
  'pool_full',
  'no_slot',
] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** Runners whose jobs are taken from one queue. */
export type PoolData = {
  name: string;
  description: string;
  /** Patterns of the names of types that need no acceptance. */
  acceptTypes: string[];
  /** The share of the slots that one tenant can have; null: that of the installation. */
  tenantSharePercent: number | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

/** `waiting`: announced, and never accepted. `disabled`: accepted once, and no longer. */
export const TYPE_STATES = ['waiting', 'accepted', 'disabled'] as const;
export type TypeState = (typeof TYPE_STATES)[number];

/**
 * A job type that runners have announced. `shape`, `digest` and `definition` are those that were
 * accepted last; null before the first acceptance.
 */
export type RemoteTypeData = {
  name: string;
  pool: string;
  state: TypeState;
  shape: string | null;
  digest: string | null;
  definition: RemoteTypeDefinition | null;
  acceptedBy: string | null;
  acceptedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

/** What runners have announced under the name of a type. */
export type TypeVersion = {
  digest: string;
  shape: string;
  definition: RemoteTypeDefinition;
  firstSeenAt: Date;
};

/** A process that takes jobs of one pool. */
export type RunnerData = {
  id: string;
  pool: string;
  tokenId: string;
  name: string;
  version: string;
  /** How many jobs it runs at a time. */
  slots: number;
  /** The digests of the types that it can run, by name. */
  types: Readonly<Record<string, string>>;
  address: string | null;
  /** It can take jobs. */
  reachesTemporal: boolean;
  startedAt: Date;
  seenAt: Date;
};

/** A runner that has not reported for this time no longer counts, in seconds. */
export const RUNNER_LIFETIME_SECONDS = 30;

/** Runners report this often, in seconds. */
export const RUNNER_REPORT_SECONDS = 10;

/** How busy a pool is: the slots of its living runners, and its jobs. */
export type PoolLoad = { slots: number; runningJobs: number; queuedJobs: number };

/** More queued jobs of a pool are not counted. */
export const MAX_COUNTED_JOBS = 1_000;

/** Tokens of unanswered requests that a runner names when it begins an attempt. */
export const MAX_UNANSWERED = 20;
