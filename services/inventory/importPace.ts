import { setTimeout as sleep } from 'node:timers/promises';
import { tenantKey } from '../../platform/connectionUser.ts';
import { tenantActivity } from '../../platform/tenantActivity.ts';

/** The number of rows that one transaction writes. */
const BATCH_SIZE = 500;
/** The same while other tenants are active: a transaction keeps processors busy until it ends. */
const SMALL_BATCH_SIZE = 50;

/** While other tenants are active, an import pauses for as long as its last batch took, and at most this long. */
const MAX_REST_MS = 500;

/** What the pace depends on; tests have their own. */
type Deps = {
  now(): number;
  rest(ms: number, signal: AbortSignal): Promise<unknown>;
  activity: Pick<typeof tenantActivity, 'othersAreActive'>;
};

/** How fast imports write: as fast as they can, or half of the time while other tenants are active. */
export const createImportPace = ({
  now = () => performance.now(),
  rest = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted()),
  activity = tenantActivity,
}: Partial<Deps> = {}) => ({
  /** Writes one batch of a tenant. Error: the reason of `signal`. */
  async step(
    tenantId: string,
    signal: AbortSignal,
    write: (maxRows: number) => Promise<void>,
  ): Promise<void> {
    const othersAreActive = () => activity.othersAreActive(tenantKey(tenantId));
    const startedAt = now();
    await write(othersAreActive() ? SMALL_BATCH_SIZE : BATCH_SIZE);
    if (othersAreActive()) await rest(Math.min(now() - startedAt, MAX_REST_MS), signal);
  },
});
