import { createBackfills } from '../../services/schedules/backfills.ts';
import { createCatchUp } from '../../services/schedules/catchUp.ts';
import { createRunDecisions } from '../../services/schedules/runDecision.ts';
import { createRunHistory } from '../../services/schedules/runHistory.ts';
import { createScheduleRunner } from '../../services/schedules/scheduleRunner.ts';
import { createSchedules } from '../../services/schedules/schedules.ts';
import { createTemporalSync } from '../../services/schedules/temporalSync.ts';
import {
  createCompareTemporalSchedule,
  createListTemporalSchedules,
} from '../../temporal/scheduleSync.ts';
import type { Core } from './core.ts';

/** Builds schedules, what runs them, and what keeps Temporal Schedules in sync with the records. */
export function composeSchedules(core: Core) {
  const { config, temporal, taskQueue } = core;
  const runDecisions = createRunDecisions(core);
  const schedules = createSchedules({ ...core, runDecisions });
  const runner = createScheduleRunner({ ...core, runDecisions, schedules });
  return {
    schedules,
    runner,
    catchUp: createCatchUp({ ...core, runner, everyMs: config.catchUpSeconds * 1_000 }),
    temporalSync: createTemporalSync({
      ...core,
      compareWithTemporal: createCompareTemporalSchedule(temporal, core),
      listTemporalSchedules: createListTemporalSchedules(temporal, taskQueue),
    }),
    runHistory: createRunHistory(core),
    backfills: createBackfills({ ...core, schedules }),
  };
}
