import { Button } from '@mantine/core';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import type { InventoryRecord, Resource } from './inventoryQueries.ts';

type Props = { resource: Resource; record?: InventoryRecord };

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** Where a record is in the address spaces; undefined for resources that are in none. */
function spaceOf({ resource: { name }, record }: Props) {
  if (name === 'vrfs') return record && { vrf: record.id };
  const network = { prefixes: 'cidr', 'ip-addresses': 'address', 'ip-ranges': 'startAddress' }[
    name as string
  ];
  if (network === undefined) return undefined;
  const [vrf, at] = [textOf(record?.vrfId), textOf(record?.[network])];
  return { ...(vrf !== undefined && { vrf }), ...(at !== undefined && { at }) };
}

/** Leads to the tree and the map of the address space that records are in. */
export function SpaceLink(props: Props) {
  const search = spaceOf(props);
  if (search === undefined) return null;
  return (
    <Button
      variant="default"
      leftSection={<Icon name="network" size={14} />}
      renderRoot={(rest) => <PageLink {...rest} to="/inventory/prefixes/space" search={search} />}
    >
      {props.record ? 'Show in the address space' : 'Tree and map'}
    </Button>
  );
}
