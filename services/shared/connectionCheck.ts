import type { Knex } from '../../db/core/knex.ts';
import { readConnectionFacts } from '../../db/core/connectionFacts.ts';
import { connectionBudget, type ConnectionBudget } from '../../domain/shared/connectionBudget.ts';
import { counted } from '../../domain/shared/counted.ts';
import { isOutage } from '../../domain/shared/outage.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { ConfigError } from '../../platform/config.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { ConnectionNeeds } from '../../platform/metrics/databasePool.ts';
import { within } from '../../platform/within.ts';
import { createClockCheck } from './clockCheck.ts';

type Deps = {
  db: Knex;
  log: Log;
  metrics: { setConnectionNeeds(needs: ConnectionNeeds): void };
  config: { databasePool: number; processes: number; otherConnections: number };
};

/** Other processes join and leave: the budget is computed again this often. */
const INTERVAL_MS = 60_000;

/** How long the start of a process waits for the check. */
const START_LIMIT_MS = 5_000;

const ADVICE =
  'Raise max_connections of PostgreSQL, or lower HOLDFAST_DATABASE_POOL (docs/deployment.md#connections).';

/** The budget in words: `4 processes of Holdfast (84) and others (49) may open 133 of 97`. */
const inWords = ({ processes, own, others, needed, usable }: ConnectionBudget): string =>
  `${counted(processes, 'process')} of Holdfast (${own}) and others (${others}) ` +
  `may open ${needed} connections; PostgreSQL accepts ${usable}`;

/**
 * Checks whether PostgreSQL accepts as many connections as the installation may open, and whether its clock is
 * that of this process.
 */
export function createConnectionCheck({ db, log, metrics, config }: Deps) {
  let reported: string | undefined;
  const checkClock = createClockCheck({ db, log });

  async function readBudget(): Promise<ConnectionBudget> {
    const poolSize = config.databasePool;
    const facts = await useConnectionsForProcess(() => readConnectionFacts(db, poolSize));
    const budget = connectionBudget(facts, { ...config, poolSize });
    metrics.setConnectionNeeds(budget);
    return budget;
  }

  /** Logs a budget, unless it says the same as the last one. */
  function report(budget: ConnectionBudget): void {
    const { result, processes } = budget;
    const key = `${result} ${processes}`;
    if (key === reported) return;
    reported = key;
    if (result === 'fits') log.info(budget, `database connections: ${inWords(budget)}`);
    else log.warn(budget, `database connections may run out: ${inWords(budget)}. ${ADVICE}`);
  }

  /** The readiness of the process warns of outages, and the pool of refused connections. */
  function reportFailure(error: unknown): undefined {
    const level = isOutage(error) ? 'debug' : 'warn';
    log[level]({ err: error }, 'the limits of PostgreSQL could not be read');
  }

  const loop = createLoop({ name: 'connections', everyMs: INTERVAL_MS, log }, async () => {
    const budget = await readBudget().catch(reportFailure);
    if (budget) report(budget);
    await checkClock().catch(() => undefined);
    return false;
  });

  return {
    /**
     * Checks once, before the process serves anything; without PostgreSQL, `start` does later. Error:
     * `ConfigError`, if the processes of Holdfast alone need more than PostgreSQL accepts.
     */
    async beforeStart(): Promise<void> {
      const budget = await within(START_LIMIT_MS, readBudget().catch(reportFailure));
      if (!budget) return;
      if (budget.result === 'impossible')
        throw new ConfigError(`Too few database connections: ${inWords(budget)}. ${ADVICE}`);
      report(budget);
    },

    start: loop.start,
    stop: loop.stop,
  };
}
