import {
  findAuditTenants,
  sealEntries,
  verifyChain,
  type ChainCheck,
} from '../../db/audit/chain.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';

/** Time between two runs, and so about the age at which an entry is sealed. */
const SEAL_INTERVAL_MS = 1_000;
const SEAL_BATCH = 1_000;

/** Seals entries of the audit log in the background, so that writers do not wait for each other. */
export function createAuditSealer({ db, log }: { db: Knex; log: Log }) {
  const loop = createLoop(
    { name: 'seal audit', everyMs: SEAL_INTERVAL_MS, log },
    async () => (await sealEntries(db, SEAL_BATCH)).hasMore,
  );
  return {
    start: loop.start,
    stop: loop.stop,
    /**
     * Seals up to 1,000 entries now, fewer of large ones. Returns the number sealed; 0 also if another
     * process is sealing.
     */
    seal: async (): Promise<number> => (await sealEntries(db, SEAL_BATCH)).count,
    /** Ids of the tenants that have entries. */
    tenants: (): Promise<string[]> => findAuditTenants(db),
    verify: (tenantId: string): Promise<ChainCheck> => verifyChain(db, tenantId),
  };
}
