import type { Rules } from '../planning.ts';
import type { ResourceName } from '../names.ts';
import { addressRules, rangeRules } from './addresses.ts';
import { customFieldRules, tagRules } from './customFields.ts';
import { cableRules, deviceRules, interfaceRules } from './devices.ts';
import { vlanGroupRules, vlanRules, vrfRules } from './networks.ts';
import {
  deviceTypeRules,
  locationRules,
  rackRules,
  regionRules,
  siteRules,
  tenantRules,
} from './facilities.ts';
import { prefixRules } from './prefixes.ts';

/** The rules of each resource, besides its schema, references and unique fields. */
export const RULES: Readonly<Partial<Record<ResourceName, Rules>>> = {
  tenants: tenantRules,
  regions: regionRules,
  sites: siteRules,
  locations: locationRules,
  racks: rackRules,
  'device-types': deviceTypeRules,
  devices: deviceRules,
  interfaces: interfaceRules,
  cables: cableRules,
  vrfs: vrfRules,
  'vlan-groups': vlanGroupRules,
  vlans: vlanRules,
  prefixes: prefixRules,
  'ip-ranges': rangeRules,
  'ip-addresses': addressRules,
  tags: tagRules,
  'custom-fields': customFieldRules,
};
