import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { countRunningJobs } from '../../db/runners/runners.ts';
import { Runner } from '../../db/models/Runner.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { RunnerData } from '../../domain/runners/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';

export type Runners = ReturnType<typeof createRunners>;

/** A runner, and how many jobs it runs now. */
export type RunnerView = { runner: RunnerData; runningJobs: number };

const runnerRecord = recordOf<RunnerData>({
  type: 'runner',
  auditView: ({ pool, name, version, slots, tokenId }) => ({ pool, name, version, slots, tokenId }),
});

type Deps = { db: Knex; commit: Commit; access: Access };

/** The runners that have announced themselves, for those who operate them. */
export const createRunners = ({ db, commit, access }: Deps) => ({
  async list(request: ListRequest): Promise<ListAnswer<RunnerView>> {
    const answer = await readList({ db, visible: () => Runner.query(db) }, request);
    return { ...answer, items: await withJobs(db, answer.items) };
  },

  /** Error: `not_found`. */
  async read(id: string): Promise<RunnerView> {
    const runner = await Runner.query(db).findById(id);
    const [view] = runner ? await withJobs(db, [runner]) : [];
    if (!view) throw notFound('runner', id);
    return view;
  },

  /** Forgets a runner. Errors: `permission_denied`, `not_found`. */
  async remove(caller: Caller, id: string): Promise<void> {
    await access.require(caller, 'jobtype:write', { tenantId: PLATFORM });
    await commit({ ...caller, tenantId: PLATFORM }, async (work) => {
      const trx = await work.trx();
      const runner = await Runner.query(trx).findById(id).forUpdate();
      if (!runner) throw notFound('runner', id);
      await Runner.query(trx).deleteById(id);
      runnerRecord.deleted(work, runner);
    });
  },
});

async function withJobs(db: Knex, runners: readonly RunnerData[]): Promise<RunnerView[]> {
  const jobs = await countRunningJobs(db, [...new Set(runners.map(({ pool }) => pool))]);
  return runners.map((runner) => ({ runner, runningJobs: jobs.get(runner.id) ?? 0 }));
}
