import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../app/live.ts';
import { usePolling } from '../../app/usePolling.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { PoolActions } from './PoolActions.tsx';
import { PoolJobs } from './PoolJobs.tsx';
import { PoolRunners } from './PoolRunners.tsx';
import { PoolTypes } from './PoolTypes.tsx';
import { poolState, queuedText, slotsText } from './poolText.ts';
import { poolKey, poolQuery, RUNNERS_MS, type Pool } from './runnerQueries.ts';

const route = getRouteApi('/frame/runners/pools/$pool');

const PARENT = { label: 'Runners', to: '/runners' };

/** A pool: its runners, its job types, and the jobs that wait for it. */
export function PoolPage() {
  const { pool: name } = route.useParams();
  const { data: pool, error, refetch } = useQuery(poolQuery(name));
  useTitle(`Pool ${name}`);
  useLiveRefresh(['pool.*', 'job-type.*'], poolKey(name));
  usePolling(poolKey(name), RUNNERS_MS);
  if (!pool)
    return (
      <RecordPage parent={PARENT} title={name}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the pool" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      title={pool.name}
      badge={<StatusBadge {...poolState(pool)} />}
      note={pool.description === '' ? undefined : pool.description}
      actions={<PoolActions key={pool.name} pool={pool} />}
      aside={<Facts pool={pool} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <PoolRunners pool={pool} />
      <PoolJobs pool={pool} />
      <PoolTypes pool={pool} />
    </RecordPage>
  );
}

type Named = Pool & { included?: Parameters<typeof Actor>[0]['names'] };

function Facts({ pool }: { pool: Named }) {
  const { acceptTypes, tenantSharePercent } = pool;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Living runners', value: String(pool.runners) },
          { label: 'Slots used', value: slotsText(pool) },
          { label: 'Waiting jobs', value: queuedText(pool) },
          {
            label: 'Types without acceptance',
            value: acceptTypes.length === 0 ? 'None' : acceptTypes.join(', '),
          },
          {
            label: 'Share of one tenant',
            value:
              tenantSharePercent === null
                ? 'The setting of the installation'
                : `${tenantSharePercent} % of the free slots`,
          },
          { label: 'Created', value: <Time value={pool.createdAt} /> },
          { label: 'Created by', value: <Actor id={pool.createdBy} names={pool.included} /> },
          { label: 'Changed', value: <Time value={pool.updatedAt} /> },
        ]}
      />
    </Section>
  );
}
