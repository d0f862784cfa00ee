import { isBusy } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readSnapshot } from '../../db/core/readSnapshot.ts';
import { countDue, type MonthCount } from '../../db/retention/preview.ts';
import { PURGE_ORDER } from '../../db/retention/sources.ts';
import {
  cutoffsOf,
  RETENTION_KINDS,
  type RetentionDays,
  type RetentionKind,
} from '../../domain/retention/retention.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Slots } from '../../platform/slots.ts';
import type { RetentionChange, RetentionSettings } from './settings.ts';

export type RetentionPreviews = ReturnType<typeof createRetentionPreviews>;

/** What a purge would delete of a kind; `total` is null when counting took too long. */
export type KindPreview = { kind: RetentionKind; total: number | null; months: MonthCount[] };

type Deps = {
  db: Knex;
  slots: { previews: Slots };
  retentionSettings: RetentionSettings;
  config: { retention: RetentionDays; questionTimeoutMs: number };
};

/** Counts what a purge would delete, without deleting anything. */
export function createRetentionPreviews({ db, slots, retentionSettings, config }: Deps) {
  /** Null when the time is up. Error: the reason of `signal`. */
  async function countKind(
    read: (trx: Knex) => Promise<MonthCount[]>,
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<MonthCount[] | null> {
    if (timeoutMs <= 0) return null;
    try {
      return await readSnapshot(db, { signal, timeoutMs }, read);
    } catch (error) {
      signal.throwIfAborted();
      if (!isBusy(error)) throw error;
      return null;
    }
  }

  return {
    /**
     * Counts by kind and month what a purge of a tenant would delete now, with its periods or with
     * `change`. A kind for which the time does not suffice has no total. Errors: `not_found`,
     * `invalid_request`, `too_many_requests`; the reason of `signal`.
     */
    async preview(
      caller: Caller,
      tenantId: string,
      change: RetentionChange,
      signal: AbortSignal,
    ): Promise<{ at: Date; kinds: KindPreview[] }> {
      const overrides = await retentionSettings.overridesWith(caller, tenantId, change);
      return slots.previews.run(caller, signal, async () => {
        const at = new Date();
        const until = performance.now() + config.questionTimeoutMs;
        const counts = new Map<RetentionKind, KindPreview>();
        for (const kind of PURGE_ORDER) {
          const cutoffs = cutoffsOf(config.retention, overrides, kind, at);
          const months = await countKind(
            (trx) => countDue(trx, kind, { tenantId, cutoffs }),
            signal,
            Math.ceil(until - performance.now()),
          );
          const total = months?.reduce((sum, { count }) => sum + count, 0) ?? null;
          counts.set(kind, { kind, total, months: months ?? [] });
        }
        return { at, kinds: RETENTION_KINDS.flatMap((kind) => counts.get(kind) ?? []) };
      });
    },
  };
}
