import type { OutboxRow } from '../db/core/unitOfWork.ts';
import { shortJobsKey, tenantOfTask, type OutboxTask } from '../domain/dispatch/tasks.ts';

/**
 * Tasks that wait for an inline call. Tenants take turns, and the tasks of one tenant take at most
 * half of the queue. The relay dispatches the tasks beyond these limits.
 */
const MAX_QUEUED = 200;
const MAX_QUEUED_PER_TENANT = 100;

/** Most short jobs that one workflow runs. */
const MAX_TOGETHER = 20;

/** Longest time that short jobs wait after a call for further ones, in milliseconds. */
const MAX_REST_MS = 50;

type Options = {
  /** Called when tasks that had to wait may be taken. */
  onReady(): void;
  now?: () => number;
};

/** `key`: what short jobs have in common that one call may start together. */
type Entry = {
  row: OutboxRow;
  tenant: string;
  key: string | undefined;
  /** Short jobs of the same kind as `row`, whose attempts are made already. */
  together?: readonly OutboxRow[];
};

/** Tasks for one call. Its `done` must be called when the call has ended. */
type Taken = { rows: OutboxRow[]; isShared: boolean; done(): void };

/**
 * The tasks that wait for an inline call. The next one is of a tenant with the fewest in flight.
 *
 * Starts of short jobs of one tenant and type are made one call at a time. Those that arrive during
 * a call are started together by the next one, after a rest of the same length: the busier the
 * servers are, the longer a call takes, and the more jobs share a workflow. A job that comes alone
 * never waits.
 */
export function createDispatchQueue({ onReady, now = () => performance.now() }: Options) {
  let entries: Entry[] = [];
  const inFlight = new Map<string, number>();
  /** The kinds of short jobs that are being started, or rest afterwards. */
  const closed = new Set<string>();
  const count = (tenant: string) => inFlight.get(tenant) ?? 0;
  const isOpen = ({ key }: Entry) => key === undefined || !closed.has(key);

  const hasSpaceFor = (task: OutboxTask): boolean => {
    if (entries.length >= MAX_QUEUED) return false;
    const tenant = tenantOfTask(task);
    return entries.filter((entry) => entry.tenant === tenant).length < MAX_QUEUED_PER_TENANT;
  };

  /** Removes an entry and those that one call can make together with it. */
  function removeWith(entry: Entry): OutboxRow[] {
    const isLike = ({ key }: Entry) => key !== undefined && key === entry.key;
    const like = entries.filter((other) => other !== entry && isLike(other));
    const taken = new Set([entry, ...like.slice(0, MAX_TOGETHER - 1)]);
    entries = entries.filter((other) => !taken.has(other));
    return [...taken].flatMap(({ row, together = [row] }) => together);
  }

  function reopen(key: string, afterMs: number): void {
    const open = () => {
      closed.delete(key);
      onReady();
    };
    const waits = entries.some((entry) => entry.key === key);
    if (waits) setTimeout(open, Math.min(afterMs, MAX_REST_MS));
    else closed.delete(key);
  }

  return {
    hasSpaceFor,
    size: () => entries.length,
    /** True if `take` returns something. */
    isReady: () => entries.some(isOpen),
    clear: () => void (entries = []),
    /** Adds a task; without space for it, the relay dispatches it. */
    add: (row: OutboxRow): void => {
      const { task } = row;
      if (hasSpaceFor(task))
        entries.push({ row, tenant: tenantOfTask(task), key: shortJobsKey(task) });
    },
    /** Adds jobs that one workflow is to be started for, without any others. */
    addTogether: (rows: readonly OutboxRow[]): void => {
      const [row] = rows;
      if (row && hasSpaceFor(row.task))
        entries.push({ row, tenant: tenantOfTask(row.task), key: undefined, together: rows });
    },
    /** Removes what the next call is to do. */
    take(): Taken | undefined {
      const next = entries
        .filter(isOpen)
        .reduce<Entry | undefined>(
          (best, entry) => (best && count(best.tenant) <= count(entry.tenant) ? best : entry),
          undefined,
        );
      if (!next) return undefined;
      const { tenant, key } = next;
      const startedAt = now();
      inFlight.set(tenant, count(tenant) + 1);
      if (key !== undefined) closed.add(key);
      const rows = removeWith(next);
      return {
        rows,
        isShared: rows.length > 1 || next.together !== undefined,
        done() {
          if (count(tenant) === 1) inFlight.delete(tenant);
          else inFlight.set(tenant, count(tenant) - 1);
          if (key !== undefined) reopen(key, now() - startedAt);
        },
      };
    },
  };
}
