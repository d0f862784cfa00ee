import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { Views } from './Views.tsx';
import { webhookColumns } from './webhookColumns.tsx';
import { WEBHOOK_FILTERS } from './webhookFilters.ts';
import type { Webhook, WebhooksQuery } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

const route = getRouteApi('/frame/webhooks');

const LIST = ['webhooks', 'list'];
/** Deliveries are no events: the list is read again. */
const REFRESH_MS = 15_000;

const keyOf = ({ id }: Webhook): string => id;

/** Webhooks by filters: how they are, and what their endpoints have answered last. */
export function WebhooksPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Webhook>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<WebhooksQuery>(WEBHOOK_FILTERS, search, now, part),
        ...(search.failingSince !== undefined && { 'failingSince.lte': now.toISOString() }),
        include: 'labels,people',
      };
      return answer(api.GET('/api/webhooks', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['webhook.*'], LIST);
  usePolling(LIST, REFRESH_MS);
  useShortcuts(
    useSession().canAnywhere('webhook:write')
      ? [{ keys: 'c', label: 'New webhook', run: () => void navigate({ to: '/webhooks/new' }) }]
      : [],
  );
  const columns = useMemo(() => webhookColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Webhook) => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Webhooks"
      noun={['webhook', 'webhooks']}
      permission="webhook:read"
      views={<Views current="webhooks" />}
      actions={<NewWebhookButton />}
      list={list}
      filters={WEBHOOK_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      rowName={nameOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No webhooks yet"
          detail="A webhook sends the events that you choose to your endpoint, signed, and retries until the endpoint accepts them."
          action={<NewWebhookButton />}
        />
      }
    />
  );
}

/** Opens the form for a webhook; hidden from those who may create none. */
function NewWebhookButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('webhook:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/webhooks/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New webhook
    </Button>
  );
}
