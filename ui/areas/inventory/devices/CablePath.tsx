import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { Icon } from '../../../parts/icons.tsx';
import { labelOfField } from '../../../parts/format.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { recordKey, type InventoryRecord } from '../inventoryQueries.ts';
import classes from './Devices.module.css';

const endsQuery = (cableId: string, ids: readonly string[]) => ({
  queryKey: [...recordKey('cables', cableId), 'ends', ids],
  queryFn: ({ signal }: { signal: AbortSignal }) => {
    const query = { id: [...ids], include: 'labels' };
    return answer(api.GET('/api/inventory/interfaces', { params: { query }, signal }));
  },
});

/** Both ends of a cable, with the devices that they are on. */
export function CablePath({ record }: { record: InventoryRecord }) {
  const ids = [String(record.aInterfaceId), String(record.bInterfaceId)];
  const query = endsQuery(record.id, ids);
  const { data, error, refetch } = useQuery(query);
  const shown = new Set([...ids, ...(data?.items.map(({ deviceId }) => deviceId) ?? [])]);
  useLiveRefresh(['inventory.interface.*', 'inventory.device.*'], query.queryKey, ({ subject }) =>
    shown.has(subject.id),
  );
  const [one, other] = ids.map((id) => {
    const found = data?.items.find((each) => each.id === id);
    return (
      <div key={id} className={classes.end}>
        {found && (
          <>
            <RecordLink id={found.deviceId} names={data?.included} kind="devices" />
            <RecordLink id={id} label={found.name} />
            <StatusBadge status={found.enabled ? 'enabled' : 'disabled'} plain />
          </>
        )}
        {data && !found && (
          <span className={classes.muted}>An interface that you may not read</span>
        )}
      </div>
    );
  });
  const kind = labelOfField(String(record.kind));
  const length =
    typeof record.lengthMeters === 'number' ? `, ${String(record.lengthMeters)} m` : '';
  return (
    <Section title="From end to end">
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <div className={classes.path}>
        {one}
        <span className={classes.wire}>
          <Icon name="arrowLeft" size={14} />
          {kind}
          {length}
          <Icon name="arrowRight" size={14} />
        </span>
        {other}
      </div>
    </Section>
  );
}
