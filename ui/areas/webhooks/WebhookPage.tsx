import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { usePolling } from '../../app/usePolling.ts';
import { useTitle } from '../../app/useTitle.ts';
import { AppLink } from '../../parts/AppLink.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { ReceiverCode } from '../../parts/webhooks/ReceiverCode.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { DeliveryList } from './DeliveryList.tsx';
import { HealthNote } from './HealthNote.tsx';
import { WebhookActions } from './WebhookActions.tsx';
import { WebhookFacts } from './WebhookFacts.tsx';
import { WebhookHistory } from './WebhookHistory.tsx';
import { webhookKey, webhookQuery, type WebhookDetail } from './webhookQueries.ts';
import { healthOf, nameOf } from './webhookText.ts';
import classes from './Webhooks.module.css';

const route = getRouteApi('/frame/webhooks/$webhookId');

const PARENT = { label: 'Webhooks', to: '/webhooks' };
/** What an endpoint answers is no event. */
const REFRESH_MS = 5_000;

/** A webhook: how it is, what it has delivered, and what can be done about it. */
export function WebhookPage() {
  const { webhookId } = route.useParams();
  const query = webhookQuery(webhookId);
  const { data: webhook, error, refetch } = useQuery(query);
  useTitle(webhook && `Webhook ${nameOf(webhook)}`);
  useLiveRefresh(['webhook.*'], webhookKey(webhookId), ({ subject }) => subject.id === webhookId);
  usePolling(query.queryKey, REFRESH_MS);
  if (!webhook)
    return (
      <RecordPage parent={PARENT} title="Webhook" id={webhookId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the webhook" />
        )}
      </RecordPage>
    );
  return <Loaded key={webhookId} webhook={webhook} error={error} onRetry={() => void refetch()} />;
}

type LoadedProps = { webhook: WebhookDetail; error: Error | null; onRetry: () => void };

function Loaded({ webhook, error, onRetry }: LoadedProps) {
  const { id, tenantId, deliveries } = webhook;
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [note, setNote] = useState<ReactNode>();
  const edit = () => void navigate({ to: '/webhooks/$webhookId/edit', params: { webhookId: id } });
  useShortcuts(
    useSession().can('webhook:write', { tenantId })
      ? [{ keys: 'e', label: 'Edit the webhook', run: edit }]
      : [],
  );
  return (
    <RecordPage
      parent={PARENT}
      id={id}
      title={nameOf(webhook)}
      badge={<StatusBadge {...healthOf(webhook, deliveries[0]?.status ?? null)} />}
      actions={<WebhookActions webhook={webhook} onNote={setNote} />}
      aside={<WebhookFacts webhook={webhook} />}
    >
      {error && <ProblemNote problem={error} retry={onRetry} hasData />}
      {note !== undefined && (
        <div className={classes.notice} role="status">
          {note}
        </div>
      )}
      <HealthNote webhook={webhook} />
      <DeliveryList
        webhookId={id}
        search={search}
        onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      />
      <Subscription types={webhook.eventTypes} />
      <WebhookHistory webhookId={id} />
      <details className={classes.fold}>
        <summary>A receiver that verifies the signature</summary>
        <ReceiverCode />
      </details>
    </RecordPage>
  );
}

/** The event types that a webhook subscribes to, each with its position in the catalogue. */
function Subscription({ types }: { types: readonly string[] }) {
  return (
    <Section title="Event types">
      {types.includes('*') ? (
        <p className={classes.muted}>
          All of the <AppLink to="/event-types">catalogue</AppLink>, also those that later versions
          add.
        </p>
      ) : (
        <ul className={classes.tags}>
          {types.map((type) => (
            <li key={type}>
              <AppLink to={`/event-types/${type}`}>{type}</AppLink>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
