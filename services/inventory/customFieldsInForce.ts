import type { Caller } from '../../domain/shared/caller.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { pageOf, type ListCondition, type ListKey } from '../../domain/shared/lists.ts';
import type { InventoryRecords } from './records.ts';

/** What is read at most, in pages; quotas allow far fewer definitions. */
const PAGE_SIZE = 200;
const MAX_PAGES = 10;

/** A definition of a custom field: a record of `custom-fields`. */
export type CustomField = Row & { resource: ResourceName; name: string; tenantId: string | null };

/**
 * The custom fields that records of the caller's tenant can have, by name, as far as the caller may
 * read their definitions. A definition of the platform replaces one of the tenant with the same name.
 */
export async function customFieldsInForce(
  records: InventoryRecords,
  caller: Caller,
): Promise<CustomField[]> {
  const own = await definitions(records, caller, {}, [ofTenant(caller.tenantId)]);
  const platform =
    caller.tenantId === PLATFORM ? [] : await definitions(records, caller, { shared: true }, []);
  const keyOf = ({ resource, name }: CustomField) => `${resource} ${name}`;
  const replaced = new Set(platform.map(keyOf));
  return [...own.filter((each) => !replaced.has(keyOf(each))), ...platform].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
}

const ofTenant = (tenantId: string): ListCondition => ({
  field: 'tenantId',
  kind: 'text',
  nullable: true,
  operator: 'in',
  values: [tenantId],
});

async function definitions(
  records: InventoryRecords,
  caller: Caller,
  filter: { shared?: boolean },
  where: ListCondition[],
): Promise<CustomField[]> {
  const found: CustomField[] = [];
  let after: ListKey | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const request = { ...pageOf(PAGE_SIZE, after), where };
    const { items, next } = await records.list(caller, 'custom-fields', filter, request);
    // The columns of these fields are not null.
    found.push(...(items as CustomField[]));
    if (!next) break;
    after = next;
  }
  return found;
}
