import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Empty } from '../../parts/Empty.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { deliveryColumns } from './deliveryColumns.tsx';
import { Views } from './Views.tsx';
import { DELIVERY_FILTERS } from './webhookFilters.ts';
import type { DeliveriesQuery, Delivery } from './webhookQueries.ts';

const route = getRouteApi('/frame/deliveries');

const LIST = ['webhooks', 'deliveries'];
/** Deliveries are no events: the list is read again. */
const REFRESH_MS = 10_000;

const keyOf = ({ id }: Delivery): string => id;

/** The deliveries to all webhooks. */
export function DeliveriesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Delivery>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<DeliveriesQuery>(DELIVERY_FILTERS, search, now, part),
        include: 'labels',
      };
      return answer(api.GET('/api/deliveries', { params: { query }, signal }));
    },
  });
  usePolling(LIST, REFRESH_MS);
  const columns = useMemo(() => deliveryColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Delivery) =>
      void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Deliveries"
      noun={['delivery', 'deliveries']}
      permission="webhook:read"
      views={<Views current="deliveries" />}
      list={list}
      filters={DELIVERY_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No deliveries yet"
          detail="One for each event and each webhook that subscribes to it."
        />
      }
    />
  );
}
