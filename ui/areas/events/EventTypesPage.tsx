import { TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { eventTypesQuery, matchingTypes, type EventType } from '../../app/eventTypes.ts';
import { groupTypes } from '../../app/typeGroups.ts';
import { useTypedSearch } from '../../app/useTypedSearch.ts';
import { AppLink } from '../../parts/AppLink.tsx';
import { Bones } from '../../parts/Bones.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { ReceiverCode } from '../../parts/webhooks/ReceiverCode.tsx';
import classes from './Events.module.css';

const route = getRouteApi('/frame/event-types');

const PARENT = { label: 'Events', to: '/events' };

/** The catalogue of event types. */
export function EventTypesPage() {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const { text, type } = useTypedSearch(
    q,
    (next) => void navigate({ search: { q: next === '' ? undefined : next }, replace: true }),
  );
  const { data: types, error, refetch } = useQuery(eventTypesQuery);
  const found = types && matchingTypes(types, text);
  return (
    <RecordPage
      parent={PARENT}
      title="Event types"
      note="Changes of records, and what happens to jobs, schedules, requests and backups, emit events. Reading events needs the permission event:read; users who may create webhooks (webhook:write) can receive every event of its tenant. Events have ids and states, never secrets."
    >
      <TextInput
        className={classes.search}
        aria-label="Search event types"
        placeholder="Search event types"
        leftSection={<Icon name="search" size={14} />}
        value={text}
        onChange={({ currentTarget: { value } }) => type(value)}
      />
      <p className={classes.muted} role="status">
        {found && types && found.length < types.length
          ? `${found.length} of ${types.length} types`
          : types && formatNumberOf(types.length, 'type')}
      </p>
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {!types && !error && <Bones rows={12} />}
      {found?.length === 0 && <Empty kind="filtered" title="No event type has these words" />}
      {found &&
        groupTypes(found).map(({ name, label, types: own }) => (
          <Section key={name} title={label} note={formatNumberOf(own.length, 'type')}>
            <TypeTable types={own} />
          </Section>
        ))}
      <Section title="A receiver that verifies the signature">
        <ReceiverCode />
      </Section>
    </RecordPage>
  );
}

function TypeTable({ types }: { types: readonly EventType[] }) {
  return (
    <table className={`${classes.table} ${classes.types}`}>
      <tbody>
        {types.map(({ type, summary }) => (
          <tr key={type}>
            <th scope="row">
              <AppLink to={`/event-types/${type}`}>{type}</AppLink>
            </th>
            <td>{summary}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
