import { Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { formatHost, parseHost, type Block } from '../../../../domain/inventory/cidr.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { Empty } from '../../../parts/Empty.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { RecordPicker } from '../../../parts/records/RecordPicker.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { networkOf } from '../space/networks.ts';
import { pathQuery } from '../space/spaceQueries.ts';
import { AddressContext } from './AddressContext.tsx';
import { recordsOfQuery } from './addressQueries.ts';
import { inPrefix } from './neighbours.ts';
import classes from './Addresses.module.css';

const route = getRouteApi('/frame/inventory/ip-addresses/at');

const PARENT = { label: 'IP addresses', to: '/inventory/ip-addresses' };

/** An address, recorded or not: what it is, where it is, and what is beside it. */
export function AddressPage() {
  const { address: typed = '', vrf } = route.useSearch();
  const host = parseHost(typed);
  const address = host && formatHost(host.family, host.value);
  useTitle(address ?? 'Address');
  return (
    <RecordPage
      parent={PARENT}
      title={address ?? 'Address'}
      actions={address !== undefined && <CopyButton value={address} label="Copy" withText />}
    >
      <Find key={typed} typed={typed} />
      {address === undefined ? (
        <Empty
          kind="nothing"
          title={typed === '' ? 'Which address?' : 'This is no address'}
          detail="An address such as 10.1.2.3 or 2001:db8::1, recorded or not."
        />
      ) : (
        <>
          <Records address={address} vrf={vrf} />
          <AddressContext address={address} vrf={vrf} />
        </>
      )}
    </RecordPage>
  );
}

/** The address, and its address space. */
function Find({ typed }: { typed: string }) {
  const { vrf } = route.useSearch();
  const navigate = route.useNavigate();
  const [text, setText] = useState(typed);
  return (
    <form
      className={classes.find}
      onSubmit={(event) => {
        event.preventDefault();
        void navigate({ search: (old) => ({ ...old, address: text.trim() }) });
      }}
    >
      <TextInput
        aria-label="Address"
        placeholder="10.1.2.3"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        error={typed !== '' && !parseHost(typed) ? 'This is no address.' : undefined}
      />
      <Button type="submit" variant="default">
        Show
      </Button>
      <RecordPicker
        resource="vrfs"
        aria-label="VRF"
        value={vrf}
        onChange={(next) =>
          void navigate({
            search: ({ vrf, ...old }) => (next === undefined ? old : { ...old, vrf: next }),
          })
        }
      />
      {vrf === undefined && <span className={classes.hint}>Global table</span>}
    </form>
  );
}

type Props = { address: string; vrf: string | undefined };

/** The records of the address; several interfaces may share it. */
function Records({ address, vrf }: Props) {
  const query = recordsOfQuery(address, vrf);
  const { data, error, refetch } = useQuery(query);
  useLiveRefresh(['inventory.ip-address.*'], query.queryKey);
  const records = data?.items ?? [];
  return (
    <Section title="Records">
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data && records.length === 0 && <NotRecorded address={address} vrf={vrf} />}
      <ul className={classes.records}>
        {records.map((record) => (
          <li key={record.id} className={classes.device}>
            <RecordLink id={record.id} label={record.address} />
            <StatusBadge status={record.status} plain />
            {record.interfaceId !== null && (
              <RecordLink id={record.interfaceId} names={data?.included} kind="interfaces" />
            )}
            {record.deviceId !== null && (
              <RecordLink id={record.deviceId} names={data?.included} kind="devices" />
            )}
            <span className={classes.hint}>{record.dnsName}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** An address as it would be configured in the prefix around it. */
const configured = (address: string, prefix: Block | undefined): string =>
  prefix ? inPrefix(address, prefix) : address;

function NotRecorded({ address, vrf }: Props) {
  const { canAnywhere } = usePermissions();
  const { data: path } = useQuery(pathQuery(address, vrf));
  const innermost = path?.at(-1);
  const search = {
    address: configured(address, innermost && networkOf(innermost.cidr)),
    ...(vrf !== undefined && { vrfId: vrf }),
  };
  return (
    <div className={classes.next}>
      <span>No record that you may read has this address.</span>
      {canAnywhere('inventory:write') && (
        <Button
          variant="default"
          renderRoot={(props) => (
            <PageLink
              {...props}
              to="/inventory/$resource/new"
              params={{ resource: 'ip-addresses' }}
              search={search}
            />
          )}
        >
          Record it
        </Button>
      )}
    </div>
  );
}
