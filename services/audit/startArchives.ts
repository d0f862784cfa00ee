import { findDueArchives, type DueArchive } from '../../db/audit/dueArchives.ts';
import type { Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { ARCHIVE_JOB } from '../../domain/audit/archives.ts';
import type { RetentionDays } from '../../domain/retention/retention.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';

type Deps = {
  db: Knex;
  log: Log;
  commit: Commit;
  jobFactory: JobFactory;
  jobTypes: JobTypes;
  config: { retention: RetentionDays };
};

/** Tenants for which one round creates jobs. The next round continues. */
const MAX_TENANTS = 100;

/** Creates the jobs that archive audit logs where retention says so. Returns how many. */
export const createStartArchives = ({ db, log, commit, jobFactory, jobTypes, config }: Deps) => {
  const start = ({ tenantId, days }: DueArchive): Promise<boolean> => {
    const caller = systemCaller(tenantId, 'retention');
    return commit(caller, (work) => {
      jobFactory.create(work, {
        type: jobTypes.get(ARCHIVE_JOB),
        payload: { olderThanDays: days },
        caller,
        source: { kind: 'system', id: null },
      });
      return true;
    });
  };
  return async (signal: AbortSignal): Promise<number> => {
    const { auditArchive: fallback } = config.retention;
    const now = await readDatabaseTime(db);
    const due = await findDueArchives(db, { now, fallback, limit: MAX_TENANTS });
    return mapConcurrently(log, signal, 'starting to archive an audit log', due, start);
  };
};
