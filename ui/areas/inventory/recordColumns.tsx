import { Exact } from '../../parts/Exact.tsx';
import { labelOfField } from '../../parts/format.ts';
import type { GridColumn } from '../../parts/grid/types.ts';
import type { Names } from '../../parts/names.ts';
import { Time } from '../../parts/Time.tsx';
import type { Schemas } from '../../app/api.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { usageText } from './amounts.ts';
import type { InventoryRecord, Resource, ResourceField } from './inventoryQueries.ts';
import { labelIn } from './resources.ts';
import { UsageBar } from './Usage.tsx';
import { CellValue, plainText, textOf } from './Value.tsx';
import { ownValue } from '../../parts/ownValue.ts';

type Column = GridColumn<InventoryRecord>;

/** Which columns a list shows by itself, the most useful first; the others are chosen. */
const FIRST: readonly string[] = [
  'status',
  'vid',
  'deviceId',
  'aInterfaceId',
  'bInterfaceId',
  'endAddress',
  'siteId',
  'vrfId',
  'rackId',
  'position',
  'deviceTypeId',
  'manufacturerId',
  'roleId',
  'role',
  'kind',
  'enabled',
  'parentId',
  'regionId',
  'groupId',
  'vlanId',
  'interfaceId',
  'dnsName',
  'resource',
  'type',
  'rd',
  'uHeight',
  'color',
  'primaryIp4Id',
  'tags',
];
/** More columns than these are a choice. */
const MOST = 7;
/** A header fits into its column: its letters, and the mark that sorts with the space around it. */
const WIDTH_OF_LETTER = 8;
const WIDTH_OF_SORT = 36;
/** The list grows narrower: columns from the second on are left out one by one. */
const SPACE_OF_COLUMN = 130;

const sortOf = (resource: Resource, name: string): Pick<Column, 'sort'> =>
  resource.sorts.includes(name) ? { sort: { asc: name, desc: `-${name}` } } : {};

const widthOf = ({
  name,
  type,
  choices,
  reference,
}: ResourceField): Pick<Column, 'width' | 'grow'> => {
  if (name === 'status') return { width: 110, grow: 0 };
  if (type === 'boolean' || type === 'integer' || type === 'number')
    return {
      width: Math.max(90, WIDTH_OF_SORT + WIDTH_OF_LETTER * labelOfField(name).length),
      grow: 0,
    };
  if (choices) return { width: 110, grow: 0 };
  return reference === null ? { width: 130 } : { width: 120 };
};

function fieldColumn(resource: Resource, field: ResourceField, names: Names): Column {
  const { name, type } = field;
  return {
    id: name,
    header: labelOfField(name),
    ...widthOf(field),
    ...(type === 'integer' || type === 'number' ? { align: 'end' as const } : {}),
    ...sortOf(resource, name),
    cell: (record) => <CellValue field={field} value={record[name]} names={names} />,
    text: (record) => textOf(field, record[name], names),
  };
}

function timeColumn(resource: Resource, name: 'createdAt' | 'updatedAt', header: string): Column {
  return {
    id: name,
    header,
    width: 116,
    isOptional: true,
    ...sortOf(resource, name),
    cell: (record) => <Time value={record[name]} />,
    text: (record) => record[name],
  };
}

const usageOf = ({ usage }: InventoryRecord): Schemas['PrefixUsage'] | undefined =>
  (usage ?? undefined) as Schemas['PrefixUsage'] | undefined;

/** How much of each prefix is used. */
const USAGE: Column = {
  id: 'usage',
  header: 'Used',
  width: 120,
  grow: 0,
  hideBelow: 480,
  cell: (record) => {
    const usage = usageOf(record);
    return usage && <UsageBar usage={usage} />;
  },
  text: (record) => {
    const usage = usageOf(record);
    return usage ? usageText(usage) : '';
  },
};

const customValue = (record: InventoryRecord, name: string): string =>
  plainText(ownValue(record.customFields as Readonly<Record<string, unknown>> | undefined, name));

/** The columns of the list of a resource, made from its description. */
export function recordColumns(resource: Resource, names: Names): Column[] {
  const fields = resource.fields.filter(
    ({ name, type }) => name !== resource.label && type !== 'object',
  );
  const isFirst = ({ name }: ResourceField) => FIRST.includes(name);
  const first = fields
    .filter(isFirst)
    .sort((one, other) => FIRST.indexOf(one.name) - FIRST.indexOf(other.name))
    .slice(0, MOST);
  const others = fields.filter((field) => !first.includes(field));
  return [
    {
      id: resource.label,
      header: labelOfField(resource.label),
      width: 170,
      grow: 2,
      ...sortOf(resource, resource.label),
      cell: (record) => (
        <RecordLink id={record.id} label={labelIn(resource, record)} kind={resource.name} />
      ),
      text: (record) => labelIn(resource, record),
    },
    ...(resource.name === 'prefixes' ? [USAGE] : []),
    ...first.map((field, index) => ({
      ...fieldColumn(resource, field, names),
      ...(index > 0 && { hideBelow: 300 + SPACE_OF_COLUMN * (index + 1) }),
    })),
    ...others.map((field) => ({
      ...fieldColumn(resource, field, names),
      ...(field.name === 'description'
        ? { grow: 2, width: 160, hideBelow: 1_240 }
        : { isOptional: true }),
    })),
    ...resource.customFields.map(({ name }): Column => ({
      id: `customFields.${name}`,
      header: name,
      isOptional: true,
      cell: (record) => <Exact text={customValue(record, name)} />,
      text: (record) => customValue(record, name),
    })),
    timeColumn(resource, 'updatedAt', 'Changed'),
    timeColumn(resource, 'createdAt', 'Created'),
    {
      id: 'id',
      header: 'Id',
      width: 250,
      isOptional: true,
      cell: ({ id }) => <code>{id}</code>,
      text: ({ id }) => id,
    },
  ];
}
