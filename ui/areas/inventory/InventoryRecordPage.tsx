import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../app/live.ts';
import { useTitle } from '../../app/useTitle.ts';
import { FieldDiff } from '../../parts/diff/FieldDiff.tsx';
import { mergeNames } from '../../parts/names.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { History } from './History.tsx';
import {
  inventoryRecordQuery,
  recordKey,
  type InventoryRecord,
  type Resource,
} from './inventoryQueries.ts';
import { RecordFacts, RecordFields } from './RecordFields.tsx';
import { Related } from './Related.tsx';
import { RecordActions } from './RecordActions.tsx';
import { labelIn, referenceOf, useResourceOf } from './resources.ts';
import { SpaceLink } from './SpaceLink.tsx';
import { SpecialAside, SpecialParts } from './SpecialParts.tsx';
import { TimeMachine } from './TimeMachine.tsx';
import { whereOf } from './whereOf.ts';
import { parentOf, WithResource } from './WithResource.tsx';

const route = getRouteApi('/frame/inventory/$resource/$recordId');

/** A record of any resource: its fields, what refers to it, and its changes; now, or at a time. */
export function InventoryRecordPage() {
  const { resource: name, recordId } = route.useParams();
  return (
    <WithResource name={name}>
      {(resource, all) => <Loading key={recordId} resource={resource} all={all} id={recordId} />}
    </WithResource>
  );
}

type LoadingProps = { resource: Resource; all: readonly Resource[]; id: string };

/** The record as it is, and as it was at the time in the address. */
function useRecord({ resource, id }: LoadingProps) {
  const { at } = route.useSearch();
  const now = useQuery(inventoryRecordQuery(resource.name, id));
  const then = useQuery({
    ...inventoryRecordQuery(resource.name, id, at),
    enabled: at !== undefined,
  });
  useLiveRefresh(
    [`inventory.${resource.kind}.*`],
    recordKey(resource.name, id),
    ({ subject }) => subject.id === id,
  );
  const { data: record, error, refetch } = at === undefined ? now : then;
  useTitle(record && labelIn(resource, record));
  return { at, record, error, refetch, now: now.data };
}

function Loading(props: LoadingProps) {
  const { resource, all, id } = props;
  const { at, record, error, refetch, now } = useRecord(props);
  const own =
    useResourceOf(resource, record && whereOf(resource.name, record).tenantId) ?? resource;
  if (!record)
    return (
      <RecordPage parent={parentOf(resource)} title={resource.singular} id={id}>
        {at !== undefined && <TimeMachine at={at} />}
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label={`Loading the ${resource.singular}`} />
        )}
        {error && <History resource={resource} id={id} />}
      </RecordPage>
    );
  const { status } = record;
  return (
    <RecordPage
      parent={parentOf(resource)}
      id={id}
      title={labelIn(resource, record)}
      badge={typeof status === 'string' && <StatusBadge status={status} />}
      note={
        typeof record.description === 'string' && record.description !== '' && record.description
      }
      actions={
        at === undefined && (
          <>
            <SpaceLink resource={resource} record={record} />
            <RecordActions resource={resource} all={all} record={record} />
          </>
        )
      }
      aside={
        <>
          <RecordFacts record={record} />
          {at === undefined && <SpecialAside resource={resource} all={all} record={record} />}
        </>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <TimeMachine at={at} />
      {at !== undefined && <Since resource={resource} then={record} now={now} />}
      {at === undefined && <SpecialParts resource={resource} all={all} record={record} />}
      <RecordFields resource={own} record={record} />
      {at === undefined && <Related resource={resource} all={all} id={id} />}
      <History resource={resource} id={id} />
    </RecordPage>
  );
}

type SinceProps = { resource: Resource; then: InventoryRecord; now: InventoryRecord | undefined };

/** What has changed between a time and now. */
function Since({ resource, then, now }: SinceProps) {
  if (!now) return null;
  const rows = resource.fields.map((field) => ({
    field: field.name,
    before: then[field.name],
    after: now[field.name],
    kind: referenceOf(field),
  }));
  return (
    <Section title="Changed since">
      <FieldDiff
        resource={resource.name}
        rows={rows}
        names={mergeNames([then.included, now.included])}
        label="Changed since"
      />
    </Section>
  );
}
