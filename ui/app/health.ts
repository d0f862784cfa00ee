import { useQuery } from '@tanstack/react-query';
import { localNow } from '../parts/clock.ts';
import { onTrouble, timedFetch } from './serverFetch.ts';
import { queryClient } from './queryClient.ts';
import { sessionState } from './session/state.ts';
import { authorizedFetch } from './session/tokens.ts';

/** Why nothing works, or not everything does. `unavailable` if it is not known which part is missing. */
export type Outage = 'unreachable' | 'unavailable' | 'postgres' | 'schema' | 'temporal';

export type Health = {
  outage: Outage | undefined;
  /** The parts of the process that answers, with their states; empty if they are not known. */
  components: Readonly<Record<string, string>>;
  /** How many checks in a row have found an outage. */
  failures: number;
};

type Found = Pick<Health, 'outage' | 'components'>;

const KEY = ['health'] as const;

/** One check that fails may be a busy moment. */
const CERTAIN = 2;
const INTERVALS_MS = { healthy: 30_000, suspected: 500, away: 3_000 };
/** The server checks its parts in rounds: for this time after a failed request, its report may be older than the failure. */
const TROUBLED_MS = 10_000;
/** What checks the parts of a process has given up by then. */
const PATIENCE_MS = 5_000;

let troubleAt = -Infinity;

const UNAVAILABLE = [502, 503, 504];

function outageIn({ postgres, temporal }: Found['components']): Outage | undefined {
  if (postgres === 'schema_outdated') return 'schema';
  if (postgres === 'unavailable') return 'postgres';
  return temporal === 'unavailable' ? 'temporal' : undefined;
}

/** For a proxy that does not pass on `/readyz`: whether the API works. */
async function tryApi(signal: AbortSignal): Promise<Found> {
  const { kind } = sessionState();
  const send = kind === 'signedIn' || kind === 'gateway' ? authorizedFetch : timedFetch;
  const { status } = await send(new Request('/api/rbac/summary', { signal }));
  return { outage: UNAVAILABLE.includes(status) ? 'unavailable' : undefined, components: {} };
}

async function check(signal: AbortSignal): Promise<Found> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
  try {
    const headers = { accept: 'application/json' };
    const response = await timedFetch('/readyz', { signal: inTime, headers });
    const isReport = response.headers.get('content-type')?.startsWith('application/json') === true;
    if (!isReport) return await tryApi(inTime);
    const { components } = (await response.json()) as Pick<Found, 'components'>;
    return { outage: outageIn(components), components };
  } catch (error) {
    if (signal.aborted) throw error;
    return { outage: 'unreachable', components: {} };
  }
}

/** Whether the server works: now and then, and soon after a request that has failed. */
const healthQuery = {
  queryKey: KEY,
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Health> => {
    const found = await check(signal);
    const before = queryClient.getQueryData<Health>(KEY)?.failures ?? 0;
    return { ...found, failures: found.outage === undefined ? 0 : before + 1 };
  },
  refetchInterval: ({ state: { data } }: { state: { data: Health | undefined } }) => {
    if (data === undefined) return INTERVALS_MS.healthy;
    // A part that starts is ready soon.
    const isWatched = localNow() - troubleAt < TROUBLED_MS || !isReady(data);
    if (data.failures === 0) return isWatched ? INTERVALS_MS.away : INTERVALS_MS.healthy;
    return data.failures < CERTAIN ? INTERVALS_MS.suspected : INTERVALS_MS.away;
  },
} as const;

onTrouble(() => {
  troubleAt = localNow();
  const { failures = 0 } = queryClient.getQueryData<Health>(KEY) ?? {};
  // During an outage every request fails, and it is checked anyway.
  if (failures > 0) return;
  void queryClient.invalidateQueries({ queryKey: KEY }, { cancelRefetch: false });
});

/** Whether the server works; undefined until that is known for the first time. */
export function useHealth(): Health | undefined {
  const { data } = useQuery(healthQuery);
  return data && data.failures > 0 && data.failures < CERTAIN
    ? { ...data, outage: undefined }
    : data;
}

/** True if requests can be answered: without Temporal they are, and jobs wait. */
export const canAnswer = (outage: Outage | undefined): boolean =>
  outage === undefined || outage === 'temporal';

/** True if nothing is known to be missing. */
export const isReady = ({ outage, components }: Health): boolean =>
  outage === undefined && Object.values(components).every((state) => state === 'ready');

/** Reads again what could not be read during an outage. */
export const readWhatFailed = (): void =>
  void queryClient.refetchQueries({
    type: 'active',
    predicate: ({ queryKey, state }) =>
      queryKey[0] !== KEY[0] && (state.error !== null || state.fetchFailureCount > 0),
  });
