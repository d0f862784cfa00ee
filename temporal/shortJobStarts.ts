import type { OutboxRow } from '../db/core/unitOfWork.ts';
import type { ImmediateJobs, StartJobTask } from '../domain/dispatch/tasks.ts';
import { shortJobsWorkflowId } from '../domain/dispatch/workflowIds.ts';
import { within } from '../platform/within.ts';

/** The start of a short job, as a commit leaves it in the outbox. */
export type ShortJobRow = OutboxRow & { task: StartJobTask };

/** Makes the first attempts of short jobs in this process. */
export type MakeAttempts = {
  accepts(): boolean;
  /** Resolves when the attempts have ended. Never rejects. */
  make(jobs: ImmediateJobs): Promise<void>;
};

type Options = {
  attempts: MakeAttempts;
  /** Starts one workflow for jobs whose attempts are being made, or were made. */
  startWorkflow(rows: readonly ShortJobRow[]): void;
};

/** How long a workflow waits for further jobs, in milliseconds, and how many it has at most. */
const COLLECT_MS = 200;
const MAX_TOGETHER = 50;

/** Most jobs that are claimed together, and the longest time that they delay the next ones. */
const MAX_CLAIMED = 20;
const MAX_DELAY_MS = 50;

/** Jobs that wait or are attempted, in all and of one tenant. The others are started as before. */
const MAX_JOBS = 200;
const MAX_JOBS_PER_TENANT = 100;

/** Short jobs of one tenant and type. */
type Kind = {
  waiting: ShortJobRow[];
  /** The jobs for the next workflow. */
  collected: ShortJobRow[];
  timer: NodeJS.Timeout | undefined;
  isRunning: boolean;
};

/**
 * Short jobs whose first attempts this process makes itself. Those that are committed during the
 * attempts of others are claimed together, by the next statement. Their workflow is started
 * afterwards, one for all of one tenant and type that come within a moment.
 */
export function createShortJobStarts({ attempts, startWorkflow }: Options) {
  const kinds = new Map<string, Kind>();
  const byTenant = new Map<string, number>();
  let total = 0;

  const tenantOf = ({ task }: ShortJobRow) => task.attributes.tenant;
  function count(tenantId: string, change: number): void {
    total += change;
    const now = (byTenant.get(tenantId) ?? 0) + change;
    if (now === 0) byTenant.delete(tenantId);
    else byTenant.set(tenantId, now);
  }

  function startCollected(key: string): void {
    const kind = kinds.get(key);
    if (!kind) return;
    clearTimeout(kind.timer);
    kind.timer = undefined;
    const rows = kind.collected.splice(0);
    if (!kind.isRunning) kinds.delete(key);
    if (rows.length > 0) startWorkflow(rows);
  }

  /** Adds jobs to the next workflow. Returns its id. */
  function collect(key: string, kind: Kind, rows: readonly ShortJobRow[]): string {
    kind.collected.push(...rows);
    kind.timer ??= setTimeout(() => startCollected(key), COLLECT_MS);
    return shortJobsWorkflowId(kind.collected[0]?.id ?? '');
  }

  async function makeNext(key: string, kind: Kind, tenantId: string): Promise<void> {
    const rows = kind.waiting.splice(0, MAX_CLAIMED);
    const made = attempts
      .make({
        workflowId: collect(key, kind, rows),
        tenantId,
        jobIds: rows.map(({ task }) => task.input.jobId),
        timeoutMs: Math.max(...rows.map(({ task }) => task.input.timeoutMs)),
      })
      .finally(() => count(tenantId, -rows.length));
    if (kind.collected.length >= MAX_TOGETHER) startCollected(key);
    await within(MAX_DELAY_MS, made);
  }

  async function makeAll(key: string, kind: Kind, tenantId: string): Promise<void> {
    kind.isRunning = true;
    while (kind.waiting.length > 0) await makeNext(key, kind, tenantId);
    kind.isRunning = false;
    if (kind.timer === undefined) kinds.delete(key);
  }

  return {
    hasSpaceFor: (tenantId: string): boolean =>
      attempts.accepts() && total < MAX_JOBS && (byTenant.get(tenantId) ?? 0) < MAX_JOBS_PER_TENANT,

    /** Adds a committed job. `key`: what it has in common with those that share its workflow. */
    add(key: string, row: ShortJobRow): void {
      const tenantId = tenantOf(row);
      const kind = kinds.get(key) ?? {
        waiting: [],
        collected: [],
        timer: undefined,
        isRunning: false,
      };
      kinds.set(key, kind);
      count(tenantId, 1);
      kind.waiting.push(row);
      if (!kind.isRunning) void makeAll(key, kind, tenantId);
    },

    /** Starts the workflows that still wait for further jobs. */
    flush(): void {
      for (const key of [...kinds.keys()]) startCollected(key);
    },
  };
}
