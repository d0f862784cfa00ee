import { useQuery } from '@tanstack/react-query';
import { Actor } from '../../../parts/Actor.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { formatCount } from '../../../parts/format.ts';
import { labelOf, type Names } from '../../../parts/names.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { Time } from '../../../parts/Time.tsx';
import { appliedQuery, type Import } from './importQueries.ts';
import { resourceLabel } from './importText.ts';
import classes from '../Inventory.module.css';

type Props = { record: Import & { included?: Names | undefined } };

/** What was sent, by whom, and what it belongs to. */
export function ImportFacts({ record }: Props) {
  const { id, dryRun, dryRunId, resource, included: names, tenantId } = record;
  const { canAnywhere } = usePermissions();
  const applied = useQuery({ ...appliedQuery(id), enabled: dryRun }).data;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          {
            label: 'Resource',
            value:
              resource === null ? (
                'Several: each line names its own'
              ) : (
                <PageLink className={classes.link} to="/inventory/$resource" params={{ resource }}>
                  {resourceLabel(resource)}
                </PageLink>
              ),
          },
          { label: 'Rows', value: formatCount(record.rows) },
          {
            label: 'Rows that cannot be written',
            value: record.mode === 'all' ? 'Stop the import' : 'Are left out',
          },
          dryRunId !== null && {
            label: 'Checked by',
            value: <RecordLink id={dryRunId} label="the dry run" />,
          },
          applied != null && {
            label: 'Imported by',
            value: <RecordLink id={applied.id} label="the import" />,
          },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Sent by', value: <Actor id={record.createdBy} names={names} /> },
          { label: 'Sent', value: <Time value={record.createdAt} /> },
          { label: 'Ended', value: <Time value={record.finishedAt} /> },
          canAnywhere('job:read') && { label: 'Job', value: <RecordLink id={record.jobId} /> },
        ]}
      />
    </Section>
  );
}
