import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useTitle } from '../../app/useTitle.ts';
import { Actor } from '../../parts/Actor.tsx';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { FieldDiff } from '../../parts/diff/FieldDiff.tsx';
import { labelOf } from '../../parts/names.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Subject } from '../../parts/Subject.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { entryQuery, type AuditEntry } from './auditQueries.ts';
import { changesOf } from './changes.ts';
import { SameRequest } from './SameRequest.tsx';
import classes from './Audit.module.css';

const route = getRouteApi('/frame/audit/$entryId');

const PARENT = { label: 'Audit', to: '/audit' };

/** An entry of the audit log: who did what from where, and what it changed. */
export function AuditEntryPage() {
  const { entryId } = route.useParams();
  const { data: entry, error, refetch } = useQuery(entryQuery(entryId));
  useTitle(entry?.action);
  if (!entry)
    return (
      <RecordPage parent={PARENT} title="Audit entry" id={entryId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={240} label="Loading the entry" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={entryId}
      title={entry.action}
      badge={<StatusBadge status={entry.outcome} />}
      aside={<Seal entry={entry} />}
    >
      <Facts entry={entry} />
      <Changes entry={entry} />
      <SameRequest requestId={entry.requestId} without={entry.id} />
    </RecordPage>
  );
}

type Entry = AuditEntry & { included?: Parameters<typeof Actor>[0]['names'] };

function Facts({ entry }: { entry: Entry }) {
  const { included: names, subject } = entry;
  return (
    <Section title="Entry">
      <DescriptionList
        items={[
          { label: 'When', value: <Time value={entry.at} format="full" /> },
          { label: 'Who', value: <Actor id={entry.actorId} names={names} full /> },
          { label: 'Authenticated by', value: entry.via },
          { label: 'From', value: entry.address },
          {
            label: 'Record',
            value: (
              <>
                <Subject subject={subject} names={names} />{' '}
                <PageLink to="/audit" search={{ subjectId: subject.id }}>
                  All about it
                </PageLink>
              </>
            ),
          },
          { label: 'Kind of record', value: subject.type },
          {
            label: 'Tenant',
            value: labelOf(names, entry.tenantId, 'tenants') ?? entry.tenantId,
          },
          {
            label: 'Request',
            value: (
              <>
                <code>{entry.requestId}</code>
                <CopyButton value={entry.requestId} label="Copy request id" />
              </>
            ),
          },
        ]}
      />
    </Section>
  );
}

/** The fields of the record before and after, or those of the request that was refused. */
function Changes({ entry }: { entry: Entry }) {
  const { before, after, included } = entry;
  const { rows, action } = changesOf(before, after);
  return (
    <Section title="What changed">
      {rows.length === 0 ? (
        <p className={classes.muted}>No field of a record.</p>
      ) : (
        <FieldDiff rows={rows} action={action} names={included} label="What changed" />
      )}
    </Section>
  );
}

/** Where the entry is in the chain of hashes that shows whether the log was changed. */
function Seal({ entry: { seal } }: { entry: Entry }) {
  if (!seal)
    return <p className={classes.muted}>It is sealed about a second after it was written.</p>;
  return (
    <DescriptionList
      items={[
        { label: 'Position', value: String(seal.position) },
        { label: 'Hash', value: <code className={classes.hash}>{seal.hash}</code> },
      ]}
    />
  );
}
