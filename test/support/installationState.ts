import type { Knex } from '../../db/core/knex.ts';
import type { InstallationState } from '../../platform/metrics/installationGauges.ts';

type Row = { ageSeconds: number; state: Partial<InstallationState> };

/** A database that has only a state of the installation, until it goes away. */
export function createFakeState(row: Row) {
  let isAway = false;
  const raw = () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve({ rows: [row] }));
  return { db: { raw } as unknown as Knex, goAway: () => void (isAway = true) };
}
