import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import type { Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { RestoreRun } from './backupQueries.ts';
import { countsText } from './backupText.ts';
import classes from './Backups.module.css';

type Props = { run: RestoreRun & { included?: Names | undefined } };

/** Who started a run, when, and what it is about. */
export function RunFacts({ run }: Props) {
  const { included: names, purpose } = run;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Backup', value: <RecordLink id={run.backupId} names={names} /> },
          { label: 'Sections', value: run.sections.join(', ') },
          { label: 'Started', value: <Time value={run.createdAt} format="full" /> },
          { label: 'By', value: <Actor id={run.createdBy} names={names} full /> },
          { label: 'Ended', value: <Time value={run.finishedAt} format="full" /> },
          purpose === 'restore' && {
            label: 'Backup before it',
            value: <RecordLink id={run.preRestoreBackupId} names={names} />,
          },
          { label: 'Job', value: <RecordLink id={run.jobId} /> },
        ]}
      />
    </Section>
  );
}

/** Numbers of an outcome; it has others for a restore than for a test restore. */
type Outcome = Partial<
  Record<
    'created' | 'changed' | 'deleted' | 'sessionsEnded' | 'jobsEnded' | 'rows' | 'tables',
    number
  >
>;

/** What a run has done. */
export function RunOutcome({ run }: Props) {
  const { purpose, preRestoreBackupId, included: names } = run;
  const outcome = (run.outcome ?? {}) as Outcome;
  if (purpose === 'validate')
    return (
      <p className={classes.bar}>
        {run.valid === true
          ? 'The backup could be restored when this was compared. Nothing was changed.'
          : 'The backup could not be restored when this was compared. Nothing was changed.'}
      </p>
    );
  if (purpose === 'verify')
    return (
      <p className={classes.bar}>
        The archive was loaded completely, compared and migrated: it can be restored.{' '}
        {formatNumberOf(outcome.rows ?? 0, 'row')} of {formatNumberOf(outcome.tables ?? 0, 'table')}
        .
      </p>
    );
  if (purpose !== 'restore') return null;
  const { created = 0, changed = 0, deleted = 0, sessionsEnded = 0, jobsEnded = 0 } = outcome;
  const also = [
    sessionsEnded > 0 && `${formatNumberOf(sessionsEnded, 'session')} ended`,
    jobsEnded > 0 && `${formatNumberOf(jobsEnded, 'job')} with an unknown outcome`,
  ].filter(Boolean);
  return (
    <div className={classes.bar} role="status">
      <span>
        The records are restored: {[countsText({ created, changed, deleted }), ...also].join(', ')}.
      </span>
      {preRestoreBackupId !== null && (
        <span>
          To undo it, restore <RecordLink id={preRestoreBackupId} names={names} />.
        </span>
      )}
    </div>
  );
}
