import { formatNumberOf } from '../../parts/format.ts';
import { ownValue } from '../../parts/ownValue.ts';
import { isRecordId } from '../../parts/recordIds.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type JobStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
type Job = {
  type: string;
  status: JobStatus;
  source: { kind: string };
  attempts: number;
  workflowId: string | null;
  workflowForgotten: boolean | null;
  cancelRequestedAt: string | null;
  dataPurgedAt: string | null;
  startedAt: string | null;
  finishedAt: string | null;
};

export const isFinal = (status: JobStatus): boolean => status !== 'queued' && status !== 'running';

/** How long a job runs or ran; undefined before it has started. */
export const runTimeOf = ({
  startedAt,
  finishedAt,
}: Pick<Job, 'startedAt' | 'finishedAt'>): number | undefined =>
  startedAt === null || finishedAt === null
    ? undefined
    : Date.parse(finishedAt) - Date.parse(startedAt);

/** Why a job cannot be cancelled; undefined if it can. */
export function whyNotCancel(job: Pick<Job, 'status' | 'cancelRequestedAt'>): string | undefined {
  if (isFinal(job.status)) return 'The job has ended.';
  return job.cancelRequestedAt === null ? undefined : 'The job is being cancelled.';
}

/** Why a job cannot be retried, as far as that is known before asking; undefined if it can. */
export function whyNotRetry(
  { status, source, dataPurgedAt, type }: Pick<Job, 'status' | 'source' | 'dataPurgedAt' | 'type'>,
  types: readonly { name: string; createdOnlyBy: string | null }[],
): string | undefined {
  if (!isFinal(status)) return 'The job has not ended yet.';
  if (dataPurgedAt !== null) return 'The payload of the job is purged.';
  if (source.kind === 'approval')
    return 'The job was approved to run once. Ask for another approval.';
  const createdOnlyBy = types.find(({ name }) => name === type)?.createdOnlyBy ?? null;
  return createdOnlyBy === null ? undefined : `Such jobs are created by ${createdOnlyBy}.`;
}

type TemporalUi = { url: string; namespace: string } | null | undefined;

/** The address of the workflow of a job in the Temporal Web UI, or why there is none. */
export function temporalLink(
  { workflowId, workflowForgotten }: Pick<Job, 'workflowId' | 'workflowForgotten'>,
  ui: TemporalUi,
): { href: string } | { reason: string } {
  if (workflowId === null)
    return { reason: 'The first attempt of a delivery runs without a workflow.' };
  if (workflowForgotten === true)
    return { reason: 'Temporal has deleted the workflow: its retention has passed.' };
  if (!ui) return { reason: 'No Temporal Web UI is set up: HOLDFAST_TEMPORAL_UI_URL is not set.' };
  const parts = ['namespaces', ui.namespace, 'workflows', workflowId].map(encodeURIComponent);
  return { href: `${ui.url.replace(/\/+$/, '')}/${parts.join('/')}` };
}

const MAX_RELATED = 20;

/** Ids of records in a JSON value, with the field in which they are first; at most 20. */
export function relatedIds(value: unknown, ownId: string): { id: string; field: string }[] {
  const found = new Map<string, string>();
  const visit = (child: unknown, field: string) => {
    if (found.size >= MAX_RELATED) return;
    if (typeof child === 'string') {
      if (isRecordId(child) && child !== ownId && !found.has(child)) found.set(child, field);
    } else if (Array.isArray(child)) for (const each of child) visit(each, field);
    else if (typeof child === 'object' && child !== null)
      for (const [name, each] of Object.entries(child)) visit(each, name);
  };
  visit(value, '');
  return [...found].map(([id, field]) => ({ id, field }));
}

/** One attempt of a job, as its log says. */
export type Attempt = {
  attempt: number;
  startedAt: string;
  /** The last line of an attempt that is over; null for the present one. */
  endedAt: string | null;
  status: 'running' | 'succeeded' | 'failed' | 'cancelled';
  message: string | null;
};

/** The number of the attempt is shown beside it. */
const withoutAttempt = (message: string | undefined): string | null =>
  message?.replace(/^Attempt \d+ failed: /, '') ?? null;

type Line = { attempt: number; at: string; level: string; message: string };

/** The attempts of a job from the lines of its log; earlier ones are missing if their lines are. */
export function attemptsOf(
  lines: readonly Line[],
  job: Pick<Job, 'status' | 'attempts' | 'finishedAt'>,
): Attempt[] {
  const byAttempt = new Map<number, Line[]>();
  for (const line of lines)
    if (line.attempt > 0)
      byAttempt.set(line.attempt, [...(byAttempt.get(line.attempt) ?? []), line]);
  return [...byAttempt]
    .sort(([one], [other]) => one - other)
    .map(([attempt, own]): Attempt => {
      const isLast = attempt === job.attempts;
      const end = own.findLast(({ message }) => message.startsWith(`Attempt ${attempt} failed`));
      const failure = end ?? own.findLast(({ level }) => level === 'error');
      const hasFailed = !isLast || end !== undefined;
      const status = hasFailed || job.status === 'queued' ? 'failed' : job.status;
      const last = own.at(-1)?.at ?? '';
      return {
        attempt,
        startedAt: own[0]?.at ?? last,
        endedAt: status === 'running' ? null : hasFailed ? last : (job.finishedAt ?? last),
        status,
        message: status === 'succeeded' ? null : withoutAttempt(failure?.message),
      };
    });
}

type WaitReason =
  | 'type_disabled'
  | 'no_runner'
  | 'not_announced'
  | 'not_accepted'
  | 'other_digest'
  | 'pool_full'
  | 'no_slot';
type Waiting = {
  pool: string;
  runners: number;
  reason: WaitReason;
};

const WAIT_TEXTS: Readonly<Record<WaitReason, (waiting: Waiting) => string>> = {
  type_disabled: () => 'Waits until its job type is enabled again.',
  no_runner: ({ pool }) =>
    `Waits for a runner of the pool ${pool}; no runner has reported in the last 30 seconds.`,
  not_announced: ({ pool }) =>
    `Waits for a runner of the pool ${pool} with its job type; no living runner has announced it.`,
  not_accepted: ({ pool }) =>
    `Waits for a runner of the pool ${pool} with the accepted version of its job type; the living ones have other versions.`,
  other_digest: ({ pool }) =>
    `Waits for a runner of the pool ${pool} with the version of its job type that was approved.`,
  pool_full: ({ pool, runners }) =>
    `Waits for a free slot of the ${formatNumberOf(runners, 'runner')} of the pool ${pool}.`,
  no_slot: ({ pool }) =>
    `Waits for a slot of the pool ${pool}: the tenant has its share, the type its limit, or the job starts soon.`,
};

/** What a job waits for that is queued, or has lost its runner. */
export const waitingText = (waitingFor: Waiting | null): string =>
  waitingFor === null
    ? 'The job waits for a free slot of a worker.'
    : (ownValue(WAIT_TEXTS, waitingFor.reason)?.(waitingFor) ??
      `Waits for a runner of the pool ${waitingFor.pool}: ${waitingFor.reason}.`);
