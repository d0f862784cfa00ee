import type { ComponentType } from 'react';
import { AddressParts } from './addresses/AddressParts.tsx';
import { CablePath } from './devices/CablePath.tsx';
import { DeviceJobs } from './devices/DeviceJobs.tsx';
import { InterfaceSection } from './devices/InterfaceSection.tsx';
import { RackPosition } from './devices/RackPosition.tsx';
import type { InventoryRecord, Resource } from './inventoryQueries.ts';
import { VlanSection } from './networks/VlanSection.tsx';
import { RackRow } from './racks/RackRow.tsx';
import { RackSection } from './racks/RackSection.tsx';

type Props = { resource: Resource; all: readonly Resource[]; record: InventoryRecord };

type Part = ComponentType<Props>;
type Parts = Readonly<Partial<Record<Resource['name'], Part>>>;

/** What the pages of some records have before their fields. */
const PARTS: Parts = {
  racks: RackSection,
  sites: ({ record }) => <RackRow field="siteId" id={record.id} />,
  locations: ({ record }) => <RackRow field="locationId" id={record.id} />,
  cables: CablePath,
  vlans: VlanSection,
  'ip-addresses': AddressParts,
  devices: ({ record, all }) => (
    <>
      <InterfaceSection device={record} all={all} />
      <DeviceJobs deviceId={record.id} />
    </>
  ),
};

/** What they have beside them. */
const ASIDES: Parts = {
  devices: ({ record }) => <RackPosition device={record} />,
};

/** What the page of a record of some resources has besides its fields. */
export function SpecialParts(props: Props) {
  const Part = PARTS[props.resource.name];
  return Part ? <Part {...props} /> : null;
}

/** The same beside the fields. */
export function SpecialAside(props: Props) {
  const Part = ASIDES[props.resource.name];
  return Part ? <Part {...props} /> : null;
}
