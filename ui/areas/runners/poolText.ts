// The fields that are needed, without the types of the API: its client needs a browser.
type Pool = {
  name: string;
  runners: number;
  slots: number;
  runningJobs: number;
  queuedJobs: number;
};
type Runner = { alive: boolean; reachesTemporal: boolean; types: Readonly<Record<string, string>> };
type Type = { name: string; state: 'waiting' | 'accepted' | 'disabled' };

/** The number from which the service does not count any more. */
const MAX_COUNTED = 1_000;

/** The path of the page of a pool. */
export const poolPath = (name: string): string => `/runners/pools/${encodeURIComponent(name)}`;

/** A status of the console for a pool, and its text. */
export function poolState({ runners, queuedJobs }: Pool): { status: string; label: string } {
  if (runners > 0) return { status: 'connected', label: 'Served' };
  return queuedJobs > 0
    ? { status: 'offline', label: 'No runner' }
    : { status: 'none', label: 'No runner' };
}

/** A status of the console for a runner, and its text. */
export function runnerState({
  alive,
  reachesTemporal,
}: Pick<Runner, 'alive' | 'reachesTemporal'>): { status: string; label: string } {
  if (!alive) return { status: 'offline', label: 'Away' };
  return reachesTemporal
    ? { status: 'connected', label: 'Running' }
    : { status: 'offline', label: 'Without Temporal' };
}

/** `3 of 8`. */
export const slotsText = ({ runningJobs, slots }: { runningJobs: number; slots: number }): string =>
  `${runningJobs} of ${slots}`;

/** How many jobs wait, as far as the service counts. */
export const queuedText = ({ queuedJobs }: Pick<Pool, 'queuedJobs'>): string =>
  queuedJobs >= MAX_COUNTED ? `${MAX_COUNTED} or more` : String(queuedJobs);

/** Why a queued job of a type waits, as far as the pool, its runners and the type say. */
export function whyQueued(
  typeName: string,
  { pool, runners, types }: { pool: Pool; runners: readonly Runner[]; types: readonly Type[] },
): string {
  const type = types.find(({ name }) => name === typeName);
  if (type?.state === 'disabled') return 'The job type is disabled';
  if (pool.runners === 0)
    return runners.some(({ alive }) => alive)
      ? 'No runner reaches Temporal'
      : 'No runner has reported in the last 30 seconds';
  const hasRunner = runners.some(
    ({ alive, reachesTemporal, types: own }) =>
      alive && reachesTemporal && Object.hasOwn(own, typeName),
  );
  if (!hasRunner) return 'No living runner has announced the type';
  return pool.runningJobs >= pool.slots
    ? 'All slots of the pool are in use'
    : 'For a slot: the tenant has its share, or the type its limit, or it starts soon';
}

/** Why a pool cannot be deleted; undefined if it can, as far as that is known. */
export function whyNotDelete(types: readonly Type[]): string | undefined {
  if (types.length === 0) return undefined;
  return 'The pool has job types. Delete these first.';
}

type CommandOptions = { origin: string; pool: string; namespace: string | undefined };

/** Where the commands expect the token. */
export const TOKEN_FILE = '/etc/holdfast/runner.token';

/** The command that starts a runner with the token in `TOKEN_FILE`. */
export const runnerCommand = ({ origin, pool, namespace }: CommandOptions): string =>
  [
    `HOLDFAST_ROLE=runner HOLDFAST_URL=${origin}`,
    `HOLDFAST_RUNNER_TOKEN_FILE=${TOKEN_FILE}`,
    `HOLDFAST_RUNNER_POOL=${pool}`,
    'HOLDFAST_RUNNER_TYPES=/etc/holdfast/job-types',
    `TEMPORAL_ADDRESS=temporal:7233${
      namespace === undefined || namespace === 'default' ? '' : ` TEMPORAL_NAMESPACE=${namespace}`
    } npm run serve`,
  ].join(' \\\n  ');
