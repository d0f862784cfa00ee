import { RESOURCE_NAMES } from '../inventory/names.ts';
import { RESOURCES } from '../inventory/resources/index.ts';

/**
 * The kinds of records that a legal hold can name, as audit entries call them. A hold on a `user`
 * covers what the user has done. A hold on a tenant names no subject.
 */
export const HELD_TYPES: readonly string[] = [
  ...RESOURCE_NAMES.map((name) => RESOURCES[name].kind).filter((kind) => kind !== 'tenant'),
  'job',
  'schedule',
  'webhook',
  'event',
  'workflow',
  'backup',
  'user',
].sort();

/** A record, or what a user has done. */
export type HeldSubject = { type: string; id: string };

/** A legal hold: what must neither be deleted nor expire, and for how long. */
export type LegalHoldData = {
  id: string;
  tenantId: string;
  /** Who can release it: a hold of the platform binds the tenant. */
  level: 'platform' | 'tenant';
  /** Null for a hold on everything of the tenant; at the platform, of the installation. */
  subjectType: string | null;
  subjectId: string | null;
  reason: string;
  /** Null: since it was created. */
  startsAt: Date | null;
  /** Null: until it is released. */
  endsAt: Date | null;
  createdBy: string;
  createdAt: Date;
  releasedBy: string | null;
  releasedAt: Date | null;
  releaseReason: string | null;
  updatedAt: Date;
  version: number;
};

export type HoldStatus = 'planned' | 'in_force' | 'ended' | 'released';
export const HOLD_STATUSES: readonly HoldStatus[] = ['planned', 'in_force', 'ended', 'released'];

/** The status of a hold at `now`. */
export function holdStatusAt(
  { startsAt, endsAt, releasedAt }: Pick<LegalHoldData, 'startsAt' | 'endsAt' | 'releasedAt'>,
  now: Date,
): HoldStatus {
  if (releasedAt) return 'released';
  if (startsAt && startsAt > now) return 'planned';
  return endsAt && endsAt <= now ? 'ended' : 'in_force';
}
