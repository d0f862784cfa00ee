import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { answer, api } from '../../../app/api.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import links from '../Inventory.module.css';
import { DERIVED_MS, recordKey, USAGE_EVENTS, type InventoryRecord } from '../inventoryQueries.ts';
import { UsageBar } from '../Usage.tsx';
import classes from './Networks.module.css';

type Reading = { signal: AbortSignal };

/** More of each are a list of their own. */
const SHOWN = 50;

const usersKey = (id: string) => [...recordKey('vlans', id), 'users'];

const prefixesQuery = (id: string) => ({
  queryKey: [...usersKey(id), 'prefixes'],
  queryFn: ({ signal }: Reading) => {
    const query = {
      ...{ vlanId: [id], sort: 'cidr' as const, limit: SHOWN },
      include: 'labels,usage',
    };
    return answer(api.GET('/api/inventory/prefixes', { params: { query }, signal }));
  },
  staleTime: 0,
});

const interfacesQuery = (id: string) => ({
  queryKey: [...usersKey(id), 'interfaces'],
  queryFn: ({ signal }: Reading) => {
    const query = {
      ...{ untaggedVlanId: [id], sort: 'name' as const, limit: SHOWN },
      include: 'labels,connections',
    };
    return answer(api.GET('/api/inventory/interfaces', { params: { query }, signal }));
  },
  staleTime: 0,
});

/** The prefixes and interfaces that use a VLAN. */
export function VlanSection({ record: { id } }: { record: InventoryRecord }) {
  useLiveRefresh(['inventory.prefix.*', 'inventory.interface.*'], usersKey(id));
  useLiveRefresh(USAGE_EVENTS, usersKey(id), () => true, DERIVED_MS);
  return (
    <>
      <Prefixes id={id} />
      <Interfaces id={id} />
    </>
  );
}

type UsersProps = {
  title: string;
  list: { resource: string; search: Record<string, string> };
  found: {
    data: { items: readonly unknown[]; nextCursor: string | null } | undefined;
    error: Error | null;
    refetch: () => unknown;
  };
  children: ReactNode;
};

/** Records that use the VLAN, and the way to all of them. */
function Users({ title, list, found: { data, error, refetch }, children }: UsersProps) {
  return (
    <Section
      title={title}
      actions={
        data?.nextCursor != null && (
          <PageLink
            className={links.link}
            to="/inventory/$resource"
            params={{ resource: list.resource }}
            search={list.search}
          >
            All of them
          </PageLink>
        )
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data?.items.length === 0 ? (
        <p className={classes.hint}>None that you may see.</p>
      ) : (
        <ul className={classes.users}>{children}</ul>
      )}
    </Section>
  );
}

function Prefixes({ id }: { id: string }) {
  const found = useQuery(prefixesQuery(id));
  const { data } = found;
  return (
    <Users
      title="Prefixes in it"
      list={{ resource: 'prefixes', search: { vlanId: id } }}
      found={found}
    >
      {data?.items.map((prefix) => {
        const usage = data.included?.usage?.[prefix.id];
        return (
          <li key={prefix.id}>
            <RecordLink id={prefix.id} label={prefix.cidr} />
            <StatusBadge status={prefix.status} plain />
            {prefix.vrfId !== null && (
              <RecordLink id={prefix.vrfId} names={data.included} kind="vrfs" />
            )}
            <span className={classes.usage}>{usage && <UsageBar usage={usage} />}</span>
          </li>
        );
      })}
    </Users>
  );
}

function Interfaces({ id }: { id: string }) {
  const found = useQuery(interfacesQuery(id));
  const { data } = found;
  return (
    <Users
      title="Interfaces in it"
      list={{ resource: 'interfaces', search: { untaggedVlanId: id } }}
      found={found}
    >
      {data?.items.map((port) => {
        const far = data.included?.connections?.[port.id];
        return (
          <li key={port.id}>
            <RecordLink id={port.deviceId} names={data.included} kind="devices" />
            <RecordLink id={port.id} label={port.name} />
            <StatusBadge status={port.enabled ? 'enabled' : 'disabled'} plain />
            {port.mode !== null && <span className={classes.hint}>{port.mode}</span>}
            {far?.deviceName != null && (
              <span className={classes.hint}>
                connected to {far.deviceName} {far.interfaceName}
              </span>
            )}
          </li>
        );
      })}
    </Users>
  );
}
