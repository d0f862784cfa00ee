import type { Knex } from '../../db/core/knex.ts';
import type { Job } from '../../db/models/Job.ts';
import { waitsSince } from '../../db/runners/attempts.ts';
import { countRunners, isAnnounced, listOffered, readPoolLoads } from '../../db/runners/runners.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { mayRunVersion } from '../../domain/jobs/records.ts';
import type { WaitReason } from '../../domain/runners/records.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** A pool, how many of its runners are alive, and why the job waits. */
export type WaitingFor = { pool: string; runners: number; reason: WaitReason; since: Date };

/** Creates the function that says what a job of runners waits for; null for one that does not. */
export function createReadWaitingFor({ db, jobTypes }: { db: Knex; jobTypes: JobTypes }) {
  async function readWaitReason(job: Job, runners: number): Promise<WaitReason> {
    const { type, pool } = job;
    const known = jobTypes.find(type);
    if (known?.lane === 'remote' && !known.isEnabled) return 'type_disabled';
    if (runners === 0) return 'no_runner';
    if (!(await isAnnounced(db, pool, type))) return 'not_announced';
    const offered = (await listOffered(db, pool)).filter(({ name }) => name === type);
    if (offered.length === 0) return 'not_accepted';
    if (!offered.some(({ digest }) => mayRunVersion(job, digest))) return 'other_digest';
    const load = (await readPoolLoads(db, [pool])).get(pool);
    return load && load.runningJobs >= load.slots ? 'pool_full' : 'no_slot';
  }

  return async (job: Job): Promise<WaitingFor | null> => {
    const { id, status, pool, createdAt } = job;
    if (pool === '' || isFinal(status)) return null;
    const since = status === 'queued' ? createdAt : await waitsSince(db, id);
    if (since === null) return null;
    const runners = (await countRunners(db, [pool])).get(pool) ?? 0;
    return { pool, runners, reason: await readWaitReason(job, runners), since };
  };
}
