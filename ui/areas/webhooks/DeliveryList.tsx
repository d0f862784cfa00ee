import { useNavigate } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Empty } from '../../parts/Empty.tsx';
import { ListSection } from '../../parts/list/ListSection.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { ownDeliveryColumns } from './deliveryColumns.tsx';
import { OWN_DELIVERY_FILTERS } from './webhookFilters.ts';
import { webhookKey, type DeliveriesQuery, type Delivery } from './webhookQueries.ts';

type Props = {
  webhookId: string;
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
};

const keyOf = ({ id }: Delivery): string => id;

/** Deliveries are no events: what is shown is read again. */
const REFRESH_MS = 5_000;

/** The deliveries of a webhook, the newest first. */
export function DeliveryList({ webhookId, search, onSearch }: Props) {
  const navigate = useNavigate();
  const list = useList<Delivery>({
    queryKey: [...webhookKey(webhookId), 'deliveries', withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<DeliveriesQuery>(OWN_DELIVERY_FILTERS, search, now, part),
        webhookId: [webhookId],
        include: 'labels',
      };
      return answer(api.GET('/api/deliveries', { params: { query }, signal }));
    },
  });
  usePolling([...webhookKey(webhookId), 'deliveries'], REFRESH_MS);
  const columns = useMemo(() => ownDeliveryColumns(), []);
  const open = useCallback(
    ({ id }: Delivery) =>
      void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: id } }),
    [navigate],
  );
  return (
    <ListSection
      title="Deliveries"
      noun={['delivery', 'deliveries']}
      list={list}
      filters={OWN_DELIVERY_FILTERS}
      search={search}
      onSearch={onSearch}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No deliveries yet"
          detail="Each event that the webhook subscribes to is listed here, with what the endpoint answered."
        />
      }
    />
  );
}
