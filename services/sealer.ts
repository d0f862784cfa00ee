import { auditTenants, sealAudit, verifyAudit, type ChainCheck } from '../db/audit/chain.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Log } from '../platform/log.ts';
import { startLoop, type Loop } from '../platform/loop.ts';

/** Entries are sealed within about this time after their commit. */
const EVERY_MS = 1_000;
const BATCH = 1_000;

/** Chains the entries of the audit trail in the background, so that no writer waits for another. */
export function createSealer({ db, log }: { db: Knex; log: Log }) {
  let loop: Loop | undefined;
  return {
    start(): void {
      loop = startLoop(
        { name: 'seal audit', everyMs: EVERY_MS, log },
        async () => (await sealAudit(db, BATCH)) === BATCH,
      );
    },
    stop: async (): Promise<void> => loop?.stop(),
    /** Seals what is there now. Returns how many entries. */
    seal: (): Promise<number> => sealAudit(db, BATCH),
    /** Tenants that have entries or once had. */
    tenants: (): Promise<string[]> => auditTenants(db),
    verify: (tenantId: string): Promise<ChainCheck> => verifyAudit(db, tenantId),
  };
}
