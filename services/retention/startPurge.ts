import type { Commit } from '../../db/core/commit.ts';
import { ignoreNoChange, NoChange } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { claimPurge, isPurgeDue } from '../../db/retention/state.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { PURGE_JOB_TYPE } from '../../domain/retention/retention.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** How often the purge runs. */
const PURGE_EVERY_MS = HOUR_MS;

type Deps = { db: Knex; commit: Commit; jobFactory: JobFactory; jobTypes: JobTypes };

/** Creates the job of the next purge when it is due. Returns its id, or null when none is due. */
export const createStartPurge =
  ({ db, commit, jobFactory, jobTypes }: Deps) =>
  async (): Promise<string | null> => {
    if (!(await isPurgeDue(db))) return null;
    const caller = systemCaller(PLATFORM, 'retention');
    return commit(caller, async (work) => {
      if (!(await claimPurge(await work.trx(), PURGE_JOB_TYPE, PURGE_EVERY_MS)))
        throw new NoChange();
      const type = jobTypes.get(PURGE_JOB_TYPE);
      const source = { kind: 'system', id: null } as const;
      return jobFactory.create(work, { type, payload: {}, caller, source }).id;
    }).catch(ignoreNoChange(null));
  };
