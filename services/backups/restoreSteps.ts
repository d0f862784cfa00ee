import {
  findDifferences,
  askIn,
  planRestore,
  type RestorePlan,
} from '../../db/backups/differences.ts';
import { applyDifferences, isWhole, lockForSwap } from '../../db/backups/swap.ts';
import {
  bringUp,
  findUnequal,
  loadArchive,
  scratchOf,
  type Loading,
  type Migrations,
} from '../../db/backups/scratch.ts';
import { extentAt } from '../../db/backups/snapshot.ts';
import { withSession } from '../../db/backups/session.ts';
import type { Note } from '../../db/commit.ts';
import { isBusy, isRaced } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { notifying } from '../../db/core/unitOfWork.ts';
import {
  isSection,
  permissionsToRestore,
  type RestoreReport,
  type Section,
} from '../../domain/backups.ts';
import { JobFailure } from '../../domain/jobType.ts';
import type { ArchiveHeader } from '../../platform/archive/index.ts';
import type { Access } from '../access.ts';
import type { StepTools } from '../jobSteps.ts';
import { jobEnded } from '../jobs/jobAudit.ts';
import type { Archives } from './archives.ts';
import { reportOn, type Look } from './restoreReport.ts';
import type { Room } from './room.ts';

export type RestoreSteps = ReturnType<typeof createRestoreSteps>;

/** What a job of a restore is asked for. */
export type RestorePayload = {
  backupId: string;
  sections?: string[];
  planHash?: string;
  confirm?: boolean;
  safetyBackup?: boolean;
};

type Deps = {
  access: Pick<Access, 'holds'>;
  db: Knex;
  databaseUrl: string;
  note: Note;
  archives: Archives;
  room: Room;
  migrations?: Migrations;
};

/** A rehearsal is not worth a wait. */
const REHEARSAL_LOCK_MS = 1_500;
const REHEARSAL_MS = 10_000;
const MAX_REHEARSED = 10_000;

/** Ends a transaction of which nothing shall stay. */
export class Undo extends Error {}

/** What is loaded for a job, and how it would be put back. */
type Planned = { run: RestoreRun; plan: RestorePlan; header: ArchiveHeader };

/** What the workflow that loads an archive does. Every step may be repeated. */
export function createRestoreSteps({
  access: { holds },
  db,
  databaseUrl,
  note,
  archives,
  room,
  migrations,
}: Deps) {
  const payloadOf = ({ payload }: StepTools) => payload as RestorePayload;

  /** `on` is the transaction of whoever holds locks: others may wait for them with all connections of the pool. */
  async function sources(
    tools: StepTools,
    on: Knex = db,
  ): Promise<{ run: RestoreRun; backup: Backup; sections: Section[] }> {
    const run = await RestoreRun.query(on).findById(tools.jobId).throwIfNotFound();
    const backup = await Backup.query(on).findById(run.backupId).throwIfNotFound();
    return {
      run,
      backup,
      sections: (payloadOf(tools).sections ?? backup.sections).filter(isSection),
    };
  }

  /** Loads the archive beside the records. */
  async function load(tools: StepTools): Promise<void> {
    const { run, backup } = await sources(tools);
    const total = (backup.manifest?.tables ?? []).reduce((sum, { bytes }) => sum + bytes, 1);
    let bytes = 0;
    await withSession(databaseUrl, tools.signal, async (session) => {
      const loading: Loading = {
        db,
        session,
        schema: scratchOf(tools.jobId),
        ...(migrations && { migrations }),
        onRows: (more) => {
          bytes += more;
          tools.progress((50 * bytes) / total, 'loading the archive');
        },
      };
      const found = await loadArchive(archives.read(backup), loading);
      if (found.header.backupId !== backup.id)
        throw new JobFailure(
          'archive_damaged',
          'The store has the archive of another backup under this name',
          { retryable: false },
        );
      tools.log('info', `${found.manifest.rows} rows are loaded`, {
        schemaVersion: found.header.schemaVersion,
        migrations: found.todo,
      });
      // Of an archive that was found in the store nobody has written this down.
      if (backup.manifest === null)
        await note(async (on) =>
          Backup.query(on)
            .patch({ manifest: found.manifest, rows: found.manifest.rows })
            .where({ id: backup.id }),
        );
      if (run.purpose === 'verify') {
        const unequal = await findUnequal(loading, found);
        if (unequal.length > 0)
          throw new JobFailure(
            'not_proven',
            `What was loaded is not what the archive says: ${unequal.join(', ')}`,
            { retryable: false },
          );
      }
      await bringUp(loading, found);
      await session.query(
        `CREATE TABLE "${scratchOf(tools.jobId)}"._header (header json NOT NULL)`,
      );
      await session.query(`INSERT INTO "${scratchOf(tools.jobId)}"._header VALUES ($1)`, [
        JSON.stringify(found.header),
      ]);
    });
  }

  /** What is loaded, and how it would be put back. */
  async function planIn(trx: Knex, tools: StepTools): Promise<Planned> {
    const { run, backup, sections } = await sources(tools, trx);
    const ask = askIn(trx);
    const schema = scratchOf(tools.jobId);
    const [row] = await ask<{ header: ArchiveHeader }>(`SELECT header FROM "${schema}"._header`);
    if (!row) throw new JobFailure('scratch_lost', 'What was loaded is gone', { retryable: false });
    return {
      run,
      header: row.header,
      plan: await planRestore(ask, {
        schema,
        extent: extentAt(backup.tenantId),
        sections,
        archived: row.header.tables,
      }),
    };
  }

  async function look(trx: Knex, tools: StepTools, { run, plan, header }: Planned): Promise<Look> {
    if (
      permissionsToRestore(run.purpose === 'restore' ? plan.sections : []).some(
        (permission) => !holds(tools.caller.rights, permission, tools.caller),
      )
    ) {
      throw new JobFailure(
        'permission_lost',
        'What restoring these sections needs is not held any more',
        { retryable: false },
      );
    }
    const ask = askIn(trx);
    if (!(await isWhole(ask, plan)))
      throw new JobFailure(
        'scratch_lost',
        'What was loaded did not survive a restart of the database',
        { retryable: false },
      );
    await findDifferences(ask, plan);
    return reportOn(ask, plan, header, {
      actorId: tools.caller.actorId,
      confirmed: payloadOf(tools).confirm === true,
    });
  }

  /** Does it and undoes it: other records, which stay, may stand against it in ways that only the database knows. */
  async function rehearse(plan: RestorePlan, report: RestoreReport): Promise<void> {
    const { counts, tables } = report.preview;
    const beside =
      plan.extent.tenantId !== null ||
      tables.some(({ broughtAlong, created }) => broughtAlong && created > 0) ||
      plan.tables.some(({ part }, at) => part === 'history' && (tables[at]?.created ?? 0) > 0);
    if (!report.valid || !beside) return;
    const warn = (code: string, message: string) =>
      report.warnings.push({ code, message, section: null, table: null, key: null });
    if (counts.created + counts.changed + counts.deleted > MAX_REHEARSED)
      return void warn(
        'not_rehearsed',
        'There are too many changes to try them out; the restore itself finds what stands against it',
      );
    try {
      await db.transaction(async (trx) => {
        const touched = new Set(
          tables
            .filter(({ created, changed, deleted }) => created + changed + deleted > 0)
            .map(({ table }) => table),
        );
        await lockForSwap(trx, plan, REHEARSAL_LOCK_MS, touched);
        await trx.raw(`SET LOCAL statement_timeout = ${REHEARSAL_MS}`);
        await findDifferences(askIn(trx), plan);
        await applyDifferences(trx, plan);
        throw new Undo();
      });
    } catch (error) {
      if (error instanceof Undo) return;
      if (isBusy(error))
        return void warn(
          'not_rehearsed',
          'The records are being written; the restore itself finds what stands against it',
        );
      const refusal = refusalOf(error);
      if (!refusal) throw error;
      report.valid = false;
      report.errors.push({
        code: 'conflict',
        message: refusal.message,
        section: null,
        table: refusal.table,
        key: null,
      });
    }
  }

  async function compare(tools: StepTools): Promise<void> {
    tools.progress(55, 'comparing');
    const { run, plan, report, planHash } = await db.transaction(
      async (trx) => {
        await trx.raw(
          `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL client_connection_check_interval = '2s'`,
        );
        const planned = await planIn(trx, tools);
        return { ...planned, ...(await look(trx, tools, planned)) };
      },
      { isolationLevel: 'repeatable read' },
    );
    await rehearse(plan, report);
    await note(async (on) => {
      const notify = notifying([jobEnded(tools.jobId)]);
      await on.raw(
        `WITH run AS (UPDATE restore_runs SET report = ?, plan_hash = ? WHERE job_id = ? RETURNING 1) SELECT ${notify.sql} FROM run`,
        [JSON.stringify(report), planHash, tools.jobId, ...notify.bindings],
      );
    });
    const { created, changed, deleted } = report.preview.counts;
    tools.log(
      'info',
      `${created} records would be created, ${changed} changed, ${deleted} deleted`,
      { valid: report.valid },
    );
    if (run.purpose !== 'restore') return;
    if (!report.valid) throw invalid(report);
    mustBe(payloadOf(tools).planHash, planHash);
  }

  return {
    load: (tools: StepTools): Promise<void> => room(tools.signal, () => load(tools)),
    compare: (tools: StepTools): Promise<void> => room(tools.signal, () => compare(tools)),

    /** What is loaded, how it would be put back, and what that would do, worked out in a transaction. */
    planIn,
    look,
  };
}

/** What stands against a restore may be nothing for whoever reads the job: that names how much it is. */
export const invalid = ({ errors }: RestoreReport): JobFailure =>
  new JobFailure(
    'restore_invalid',
    `${errors.length} findings stand against the restore: ${[...new Set(errors.map(({ code }) => code))].join(', ')}. A validation names them.`,
    { retryable: false },
  );

/** Error: `restore_stale` where another plan was looked at. */
export function mustBe(expected: string | undefined, planHash: string): void {
  if (expected === undefined || expected === planHash) return;
  throw new JobFailure(
    'restore_stale',
    'This is not the restore whose planHash was given: records have changed since that validation, or it was of other sections',
    { retryable: false },
  );
}

/** What PostgreSQL said against a change, without values. */
export function refusalOf(error: unknown): { message: string; table: string | null } | null {
  if (!isRaced(error)) return null;
  const { table = null, constraint = '' } = error as { table?: string | null; constraint?: string };
  return {
    table,
    message: `Records that stay stand against it${table === null ? '' : ` in ${table}`}${constraint === '' ? '' : ` (${constraint})`}`,
  };
}
