import { queryRestoreRuns } from '../../db/backups/runHistory.ts';
import { readList } from '../../db/core/lists.ts';
import type { Knex } from '../../db/core/knex.ts';
import { RestoreRun } from '../../db/models/Backup.ts';
import type { Section } from '../../domain/backups/backups.ts';
import type { RestoreRunData, RestoreRunSummaryData } from '../../domain/backups/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Backups } from './backups.ts';

/** A restore run with the sections that it is about. */
export type RestoreRunView = RestoreRunSummaryData & { sections: Section[] };

/** The same with its report and its outcome. */
export type RestoreRunDetail = RestoreRunView & Pick<RestoreRunData, 'report' | 'outcome'>;

const toView = (
  run: RestoreRunSummaryData,
  { sections }: { sections: Section[] },
): RestoreRunView => ({
  ...run,
  sections: run.requestedSections ?? sections,
});

export type RestoreHistory = ReturnType<typeof createRestoreHistory>;

/** The validations, test restores and restores of backups, for callers who may read these. */
export function createRestoreHistory({
  db,
  backups,
}: {
  db: Knex;
  backups: Pick<Backups, 'find'>;
}) {
  return {
    /** The runs of a backup, newest first. Error: `not_found`. */
    async list(
      caller: Caller,
      backupId: string,
      request: ListRequest,
    ): Promise<ListAnswer<RestoreRunView>> {
      const backup = await backups.find(caller, backupId);
      const answer = await readList({ db, visible: () => queryRestoreRuns(db, backupId) }, request);
      return { ...answer, items: answer.items.map((run) => toView(run, backup)) };
    },

    /** A run of a backup with its report. Error: `not_found`. */
    async read(
      caller: Caller,
      { backupId, jobId }: { backupId: string; jobId: string },
    ): Promise<RestoreRunDetail> {
      const backup = await backups.find(caller, backupId);
      const [run, content] = await Promise.all([
        queryRestoreRuns(db, backupId).where({ id: jobId }).first(),
        RestoreRun.query(db).findById(jobId).select('report', 'outcome'),
      ]);
      if (!run || !content) throw notFound('restore run', jobId);
      const { report, outcome } = content;
      return { ...toView(run, backup), report, outcome };
    },
  };
}
