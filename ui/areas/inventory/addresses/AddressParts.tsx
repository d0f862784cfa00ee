import type { InventoryRecord } from '../inventoryQueries.ts';
import { AddressContext } from './AddressContext.tsx';
import { Assignment } from './Assignment.tsx';

/** What the page of a recorded address has before its fields. */
export function AddressParts({ record }: { record: InventoryRecord }) {
  const [host] = String(record.address).split('/');
  const vrf = typeof record.vrfId === 'string' ? record.vrfId : undefined;
  return (
    <>
      <Assignment record={record} />
      {host !== undefined && <AddressContext address={host} vrf={vrf} />}
    </>
  );
}
