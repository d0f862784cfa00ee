import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_ANNOUNCED_TYPES } from '../../domain/runners/definition.ts';
import type { AnnouncedState } from '../../domain/runners/protocol.ts';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import type { Log } from '../../platform/log.ts';
import { APP_VERSION } from '../../platform/version.ts';
import type { Catalog } from '../catalog.ts';
import type { DeclaredType } from '../declaration/load.ts';
import { RunnerApiError, type AnnounceAnswer, type RunnerApi } from './api.ts';

const MAX_NAME_CHARS = 63;
const DEFAULT_EVERY_MS = 10_000;

export type Announcer = ReturnType<typeof createAnnouncer>;

type Deps = {
  api: RunnerApi;
  catalog: Catalog;
  runnerId: string;
  pool: string;
  slots: number;
  /** Asks whether the runner can take jobs. It never fails. */
  reachesTemporal(): Promise<boolean>;
  log: Log;
};

/** What a runner says to the API about itself and the types of one pool. */
export function createAnnouncer({
  api,
  catalog,
  runnerId,
  pool,
  slots,
  reachesTemporal,
  log,
}: Deps) {
  /** The digests that were announced, by the names of types. */
  let announced = new Map<string, string>();
  let states = new Map<string, string>();
  let everyMs = DEFAULT_EVERY_MS;

  let leftOut = 0;

  /** What a runner says of itself each time. An API of the release before knows the second field only as an error. */
  const about = async () => ({
    runnerId,
    pool,
    ...((await reachesTemporal()) ? {} : { reachesTemporal: false }),
  });

  /** The types of the pool, as many as the API accepts of one runner. */
  function types(): DeclaredType[] {
    const all = catalog.ofPool(pool);
    const surplus = all.slice(MAX_ANNOUNCED_TYPES).map(({ definition }) => definition.name);
    if (surplus.length !== leftOut && surplus.length > 0)
      log.warn({ types: surplus }, `a runner announces ${MAX_ANNOUNCED_TYPES} types at most`);
    leftOut = surplus.length;
    return all.slice(0, MAX_ANNOUNCED_TYPES);
  }

  /** Logs the states that have changed. */
  function noteStates(answer: readonly AnnouncedState[]) {
    const before = states;
    states = new Map(answer.map(({ name, state, reason }) => [name, `${state} ${reason ?? ''}`]));
    for (const { name, state, reason } of answer) {
      if (before.get(name) === states.get(name)) continue;
      const details = { type: name, state, ...(reason && { reason }) };
      if (state === 'accepted') log.info(details, 'the job type is accepted');
      else log.warn(details, 'no jobs of the type come to the runner');
    }
  }

  /** Reads the types from the disk. If they cannot be read now, those that were read before stay. */
  const reload = () =>
    catalog.reload().catch((error: unknown) => {
      log.warn({ reason: errorMessage(error) }, 'the types of the runner could not be read again');
    });

  /** Reads the types from the disk, and announces them. Error: `RunnerApiError`. */
  async function announce(): Promise<AnnounceAnswer> {
    await reload();
    const current = types();
    const answer = await api.announce({
      ...(await about()),
      name: os.hostname().slice(0, MAX_NAME_CHARS),
      version: APP_VERSION,
      slots,
      types: current.map(({ digest, definition }) => ({ digest, definition })),
    });
    announced = new Map(current.map(({ definition, digest }) => [definition.name, digest]));
    everyMs = answer.everySeconds * 1_000;
    noteStates(answer.types);
    return answer;
  }

  const hasChanged = (): boolean => {
    const current = types();
    return (
      current.length !== announced.size ||
      current.some(({ definition, digest }) => announced.get(definition.name) !== digest)
    );
  };

  const logFailure = (error: unknown) => {
    const reason = errorMessage(error);
    log.warn({ reason }, 'the runner could not report to the API');
  };

  /** Announces the types; false, with a line in the log, if that has failed. */
  const hasAnnounced = () =>
    announce().then(
      () => true,
      (error: unknown) => {
        logFailure(error);
        return false;
      },
    );

  /**
   * Reports that the runner is alive, and what has changed on its disk. A runner whose announcement is refused
   * is still alive with what it has announced before.
   */
  async function report(): Promise<void> {
    await reload();
    if (hasChanged() && (await hasAnnounced())) return;
    try {
      noteStates((await api.alive(await about())).types);
    } catch (error) {
      if (!(error instanceof RunnerApiError) || error.code !== 'unknown_runner') throw error;
      await announce();
    }
  }

  return {
    announce,

    /** Announces the types again if the code of one, or its absence, is not what was announced. */
    async announceChange(name: string, digest: string | undefined): Promise<void> {
      // What follows from a failure is the answer to the next request.
      if (announced.get(name) !== digest) await announce().catch(logFailure);
    },

    /** Reports regularly until `ended` is aborted. */
    async keepReporting(ended: AbortSignal): Promise<void> {
      while (!ended.aborted) {
        await sleep(everyMs, undefined, { signal: ended }).catch(() => undefined);
        if (!ended.aborted) await report().catch(logFailure);
      }
    },

    /** Says that the runner stops. */
    leave: (): Promise<void> => api.leave({ runnerId, pool }).catch(logFailure),
  };
}
