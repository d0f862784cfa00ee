import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Approvals } from '../../services/approvals/approvals.ts';
import type { Users } from '../../services/auth/users.ts';
import type { Backups } from '../../services/backups/backups.ts';
import type { InventoryRecords } from '../../services/inventory/records.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Schedules } from '../../services/schedules/schedules.ts';
import { createSearch, type Readers } from '../../services/search/search.ts';
import type { Webhooks } from '../../services/webhooks/webhooks.ts';
import type { Core } from './core.ts';

type Areas = {
  inventory: { records: InventoryRecords };
  approvals: { approvals: Approvals };
  jobs: { jobs: Jobs };
  schedules: { schedules: Schedules };
  backups: { backups: Backups };
  webhooks: { webhooks: Webhooks };
  auth: { users: Users };
};

const PREFIXES = {
  job: 'jobs',
  sch: 'schedules',
  apr: 'approvals',
  usr: 'users',
  whk: 'webhooks',
  bkp: 'backups',
} as const;

/** Builds the search over all areas. */
export const composeSearch = (core: Core, areas: Areas) =>
  createSearch({
    ...core,
    approvals: areas.approvals.approvals,
    readers: readersOf(areas),
    prefixes: PREFIXES,
  });

const readersOf = ({
  inventory,
  approvals: { approvals },
  jobs: { jobs },
  schedules: { schedules },
  backups: { backups },
  webhooks: { webhooks },
  auth: { users },
}: Areas): Readers => ({
  ...Object.fromEntries(
    RESOURCE_NAMES.map((name) => [
      name,
      (caller: Caller, id: string) => readRecord(inventory.records, name, caller, id),
    ]),
  ),
  jobs: async (caller, id) => {
    const { job } = await jobs.read(caller, id);
    return { label: job.type, description: job.status, tenantId: job.tenantId };
  },
  schedules: async (caller, id) => {
    const { name, description, tenantId } = (await schedules.read(caller, id)).schedule;
    return { label: name, description, tenantId };
  },
  approvals: async (caller, id) => {
    const { title, type, tenantId } = (await approvals.find(caller, id)).approval;
    return { label: title, description: type, tenantId };
  },
  users: async (caller, id) => {
    const { username, displayName, tenantId } = await users.read(caller, id);
    return { label: username, description: displayName, tenantId };
  },
  webhooks: async (caller, id) => {
    // The URL can hold a credential.
    const { description, tenantId } = await webhooks.read(caller, id);
    return { label: description || id, description, tenantId };
  },
  backups: async (caller, id) => {
    const { label, status, tenantId } = (await backups.read(caller, id)).backup;
    return { label: label ?? id, description: status, tenantId };
  },
});

async function readRecord(
  records: InventoryRecords,
  name: ResourceName,
  caller: Caller,
  id: string,
) {
  const row = await records.read(caller, name, id);
  const fields = row as Partial<Readonly<Record<string, string | null>>>;
  const { tenantId = null, vrfId = null, description } = fields;
  const { labelField } = RESOURCES[name];
  return {
    label: fields[labelField] ?? id,
    description: description ?? '',
    tenantId,
    vrfId: 'vrfId' in row && name !== 'interfaces' ? vrfId : null,
  };
}
