import { hostname } from 'node:os';
import type { Knex } from '../../db/core/knex.ts';
import {
  announceProcess,
  listOtherProcesses,
  removeProcess,
  type AnnouncedProcess,
} from '../../db/operations/processes.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { OwnEndpoints } from '../../platform/ownEndpoints.ts';
import { SHARED_SETTINGS, type SharedSettings } from '../../platform/sharedSettings.ts';
import type { Ids } from '../../platform/ids.ts';

type Deps = {
  db: Knex;
  ids: Ids;
  log: Log;
  ownEndpoints: OwnEndpoints;
  sharedSettings: SharedSettings;
  config: { instance: string };
};

const INTERVAL_MS = 10_000;
/** Settings that go on to differ are logged again after this time. */
const LOG_EVERY_MS = 600_000;

/** The instances of the processes that have others of these settings, by group. */
function differences(own: SharedSettings, others: readonly AnnouncedProcess[]) {
  const groups = Object.keys(SHARED_SETTINGS) as (keyof SharedSettings)[];
  return groups.flatMap((group) => {
    const instances = others
      // Processes of another version may not have the group.
      .filter(({ settings }) => (settings[group] ?? own[group]) !== own[group])
      .map(({ instance }) => instance);
    return instances.length === 0 ? [] : [{ group, instances }];
  });
}

/**
 * Says in the database that this process runs, with digests of the settings that all processes need alike and with
 * where it listens. Reads the same of the others: settings that differ are logged as errors, and no request of a
 * user reaches the others.
 */
export function createProcessPresence(deps: Deps) {
  const { db, ids, log, ownEndpoints, sharedSettings, config } = deps;
  const id = ids.next('wrk');
  const machine = hostname();
  const loggedAt = new Map<string, number>();

  function report(others: readonly AnnouncedProcess[]): void {
    const found = differences(sharedSettings, others);
    for (const group of loggedAt.keys())
      if (!found.some((each) => each.group === group)) loggedAt.delete(group);
    for (const { group, instances } of found) {
      if (performance.now() - (loggedAt.get(group) ?? -Infinity) < LOG_EVERY_MS) continue;
      loggedAt.set(group, performance.now());
      log.error(
        { code: 'settings_differ', group, instances },
        `${SHARED_SETTINGS[group]}: other processes have other values; all need the same`,
      );
    }
  }

  async function round(): Promise<false> {
    const endpoints = ownEndpoints.listening();
    await announceProcess(db, {
      ...{ id, machine, endpoints, settings: sharedSettings },
      instance: config.instance,
    });
    const others = await listOtherProcesses(db, id);
    ownEndpoints.setOthers(
      others.map((each) => ({ ...each, isSameMachine: each.machine === machine })),
    );
    report(others);
    return false;
  }

  const loop = createLoop({ name: 'process presence', everyMs: INTERVAL_MS, log }, round);

  return {
    start: loop.start,

    async stop(): Promise<void> {
      if (!loop.isRunning()) return;
      await loop.stop();
      await removeProcess(db, id).catch((error: unknown) =>
        log.warn({ err: error }, 'the process is counted for some seconds more'),
      );
    },
  };
}
