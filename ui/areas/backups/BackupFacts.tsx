import { CopyButton } from '../../parts/CopyButton.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { formatBytes, formatCount } from '../../parts/format.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import { MadeBy } from './backupColumns.tsx';
import type { Backup } from './backupQueries.ts';
import { keptText, retentionText } from './backupText.ts';
import classes from './Backups.module.css';

type Named = Backup & { included?: Names };

/** When a backup was made, how far it can be relied on, how long it is kept, and where it is. */
export function BackupFacts({ backup }: { backup: Named }) {
  const { included: names, sizeBytes, rows, restoreTestedAt, status } = backup;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Records of', value: <Time value={backup.snapshotAt} format="full" /> },
          { label: 'Size', value: sizeBytes === null ? null : formatBytes(sizeBytes) },
          { label: 'Rows', value: rows === null ? null : formatCount(rows) },
          { label: 'Read completely', value: <Time value={backup.verifiedAt} /> },
          {
            label: 'Test-restored',
            value:
              restoreTestedAt === null && status === 'completed' ? (
                'Never'
              ) : (
                <Time value={restoreTestedAt} />
              ),
          },
          { label: 'Kept as', value: keptText(backup.keptAs) || null },
          { label: 'Retention of its series', value: retentionText(backup.retention) },
          { label: 'Made by', value: <MadeBy backup={backup} names={names} /> },
          backup.preRestoreOf !== null && {
            label: 'Made before',
            value: <BeforeRestore restore={backup.preRestoreOf} />,
          },
          { label: 'Job', value: <OfJob backup={backup} /> },
          {
            label: 'Tenant',
            value: labelOf(names, backup.tenantId, 'tenants') ?? backup.tenantId,
          },
          { label: 'Engine', value: backup.engine },
          { label: 'Store', value: backup.store },
          { label: 'Archive', value: <Archive name={backup.archive} /> },
          { label: 'Schema version', value: backup.schemaVersion },
          { label: 'Holdfast version', value: backup.appVersion },
        ]}
      />
    </Section>
  );
}

type BeforeProps = { restore: NonNullable<Backup['preRestoreOf']> };

const BeforeRestore = ({ restore: { backupId, jobId } }: BeforeProps) => (
  <PageLink
    className={classes.link}
    to="/backups/$backupId/runs/$runId"
    params={{ backupId, runId: jobId }}
  >
    a restore
  </PageLink>
);

function OfJob({ backup: { job } }: { backup: Backup }) {
  if (job === null) return <span>–</span>;
  return job.purged ? <span>{job.id} (purged)</span> : <RecordLink id={job.id} />;
}

const Archive = ({ name }: { name: string }) => (
  <>
    <code>{name}</code>
    <CopyButton value={name} label="Copy the name of the archive" />
  </>
);
