import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { notifyProblem } from '../../app/notify.ts';
import { usePolling } from '../../app/usePolling.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Exact } from '../../parts/Exact.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { labelOf } from '../../parts/names.ts';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { REASONS } from '../../parts/webhooks/answer.ts';
import { Reading } from '../../parts/Reading.tsx';
import { DeliveryAttempts } from './DeliveryAttempts.tsx';
import { deliveryQuery, type DeliveryDetail } from './webhookQueries.ts';

const route = getRouteApi('/frame/deliveries/$deliveryId');

const PARENT = { label: 'Deliveries', to: '/deliveries' };
/** Deliveries are no events. */
const REFRESH_MS = 3_000;

/** A delivery: one event for one webhook, with every attempt. */
export function DeliveryPage() {
  const { deliveryId } = route.useParams();
  const query = deliveryQuery(deliveryId);
  const { data: delivery, error, refetch } = useQuery(query);
  useTitle(delivery && `Delivery of ${delivery.eventType}`);
  usePolling(query.queryKey, REFRESH_MS);
  if (!delivery)
    return (
      <RecordPage parent={PARENT} title="Delivery" id={deliveryId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={240} label="Loading the delivery" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={deliveryId}
      title={`Delivery of ${delivery.eventType}`}
      badge={<StatusBadge status={delivery.status} />}
      actions={<RedeliverButton delivery={delivery} />}
      aside={<Facts delivery={delivery} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <DeliveryAttempts delivery={delivery} />
    </RecordPage>
  );
}

/** Sends a delivery again. It is no decision: a receiver knows the message by its id. */
function RedeliverButton({
  delivery: { id, tenantId, status, jobId },
}: {
  delivery: DeliveryDetail;
}) {
  const client = useQueryClient();
  const redeliver = useMutation({
    mutationFn: () =>
      answer(api.POST('/api/deliveries/{id}/redeliver', { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries(deliveryQuery(id)),
    onError: notifyProblem,
  });
  return (
    <PermissionButton
      permission="webhook:write"
      where={{ tenantId }}
      icon="retry"
      reason={
        status === 'pending' && jobId === null
          ? 'It waits for a free slot of its webhook.'
          : undefined
      }
      loading={redeliver.isPending}
      onClick={() => redeliver.mutate()}
    >
      {status === 'pending' ? 'Send now' : 'Redeliver'}
    </PermissionButton>
  );
}

/** Why a delivery has ended: what the last attempt says of it, or why none followed. */
function Reason({ delivery: { attempts }, code }: { delivery: DeliveryDetail; code: string }) {
  const text =
    REASONS[code] ?? attempts.findLast(({ error }) => error?.code === code)?.error?.message;
  if (text === undefined) return <code>{code}</code>;
  return (
    <>
      <Exact text={text} /> (<code>{code}</code>)
    </>
  );
}

function Facts({ delivery }: { delivery: DeliveryDetail }) {
  const { included: names, reason, job, tenantId } = delivery;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          {
            label: 'Webhook',
            value: <RecordLink id={delivery.webhookId} names={names} kind="webhooks" />,
          },
          {
            label: 'Event',
            value: <RecordLink id={delivery.eventId} label={delivery.eventType} />,
          },
          { label: 'Sequence', value: String(delivery.sequence) },
          {
            label: 'Why',
            value: reason === null ? undefined : <Reason delivery={delivery} code={reason} />,
          },
          {
            label: 'Job',
            value: job === null ? 'None yet: it waits for a free slot' : <JobOf job={job} />,
          },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Created', value: <Time value={delivery.createdAt} /> },
          { label: 'Changed', value: <Time value={delivery.updatedAt} /> },
        ]}
      />
    </Section>
  );
}

const JobOf = ({ job: { id, purged } }: { job: NonNullable<DeliveryDetail['job']> }) =>
  purged ? <>{id} (purged)</> : <RecordLink id={id} />;
