import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { eventTypesQuery, type EventType } from '../../app/eventTypes.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Json } from '../../parts/Json.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { fieldsOf } from './dataFields.ts';
import classes from './Events.module.css';

const route = getRouteApi('/frame/event-types/$eventType');

const PARENT = { label: 'Event types', to: '/event-types' };

/** An event type: when it is emitted, what its data has, and an example. */
export function EventTypePage() {
  const { eventType } = route.useParams();
  const { data: types, error, refetch } = useQuery(eventTypesQuery);
  const found = types?.find(({ type }) => type === eventType);
  useTitle(`Event type ${eventType}`);
  if (!found)
    return (
      <RecordPage parent={PARENT} title={eventType}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : types ? (
          <Empty kind="hidden" title="There is no such event type" />
        ) : (
          <Reading height={240} label="Loading the event type" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      title={eventType}
      note={found.summary}
      actions={<Actions type={eventType} />}
    >
      <Section title="Data">
        <Fields type={found} />
      </Section>
      <Section title="Example of a message">
        <Json value={found.example} label="Example of a message" />
      </Section>
      <Section title="Permissions">
        <p className={classes.muted}>
          <code>event:read</code> to read it here and in the API; <code>webhook:write</code> for a
          webhook that receives it. To read the records that its ids name, you need their
          permissions.
        </p>
      </Section>
      <Section title="JSON Schema of the data">
        <Json value={found.dataSchema} label="JSON Schema of the data" whole />
      </Section>
    </RecordPage>
  );
}

function Actions({ type }: { type: string }) {
  const { canAnywhere } = usePermissions();
  return (
    <>
      {canAnywhere('event:read') && (
        <Button
          variant="default"
          renderRoot={(props) => <PageLink {...props} to="/events" search={{ type }} />}
        >
          Events of this type
        </Button>
      )}
      {canAnywhere('webhook:read') && (
        <Button
          variant="default"
          renderRoot={(props) => (
            <PageLink {...props} to="/webhooks" search={{ eventType: type }} />
          )}
        >
          Webhooks that receive it
        </Button>
      )}
      {canAnywhere('webhook:write') && (
        <Button
          renderRoot={(props) => <PageLink {...props} to="/webhooks/new" search={{ type }} />}
        >
          New webhook
        </Button>
      )}
    </>
  );
}

function Fields({ type }: { type: EventType }) {
  return (
    <div className={classes.scroll} tabIndex={0} role="group" aria-label="Fields of the data">
      <table className={`${classes.table} ${classes.fields}`}>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Value</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {fieldsOf(type.dataSchema).map(({ name, value, description }) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>{value}</td>
              <td>{description}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
