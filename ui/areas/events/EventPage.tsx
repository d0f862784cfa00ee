import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { eventTypesQuery } from '../../app/eventTypes.ts';
import { usePolling } from '../../app/usePolling.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Json } from '../../parts/Json.tsx';
import { labelOf } from '../../parts/names.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { Subject } from '../../parts/Subject.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { EventDeliveries } from './EventDeliveries.tsx';
import { eventQuery, type EventDetail } from './eventQueries.ts';

const route = getRouteApi('/frame/events/$eventId');

const PARENT = { label: 'Events', to: '/events' };
/** An event never changes, but its deliveries do. */
const REFRESH_MS = 5_000;

/** An event: what has happened to which record, and where it was sent. */
export function EventPage() {
  const { eventId } = route.useParams();
  const query = eventQuery(eventId);
  const { data: event, error, refetch } = useQuery(query);
  const types = useQuery(eventTypesQuery);
  useTitle(event && `Event ${event.type}`);
  usePolling(query.queryKey, REFRESH_MS);
  if (!event)
    return (
      <RecordPage parent={PARENT} title="Event" id={eventId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={240} label="Loading the event" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={eventId}
      title={event.type}
      note={types.data?.find(({ type }) => type === event.type)?.summary}
      aside={<Facts event={event} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <Section title="Data">
        <Json value={event.data} label="Data" />
      </Section>
      <EventDeliveries event={event} />
    </RecordPage>
  );
}

function Facts({ event }: { event: EventDetail }) {
  const { included: names, subject, tenantId } = event;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          {
            label: 'Record',
            value: (
              <>
                <Subject subject={subject} names={names} />{' '}
                <PageLink to="/events" search={{ subject: subject.id }}>
                  All about it
                </PageLink>
              </>
            ),
          },
          { label: 'Kind of record', value: subject.type },
          {
            label: 'Type',
            value: <AppLink to={`/event-types/${event.type}`}>{event.type}</AppLink>,
          },
          { label: 'When', value: <Time value={event.createdAt} format="full" /> },
          { label: 'Who', value: <Actor id={event.actorId} names={names} full /> },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Sequence', value: String(event.sequence) },
        ]}
      />
    </Section>
  );
}
