import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { FieldValue } from '../../parts/diff/FieldDiff.tsx';
import { labelOfField } from '../../parts/format.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { InventoryRecord, Resource } from './inventoryQueries.ts';
import { CellValue } from './Value.tsx';
import { ownValue } from '../../parts/ownValue.ts';

type Props = { resource: Resource; record: InventoryRecord };

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0);

/** All fields of a record with names instead of ids, then its custom fields. */
export function RecordFields({ resource, record }: Props) {
  const values = (record.customFields ?? {}) as Readonly<Record<string, unknown>>;
  const described = resource.customFields.map(({ name }) => name);
  const custom = [...new Set([...described, ...Object.keys(values)])];
  return (
    <>
      <Section title="Fields">
        <DescriptionList
          items={resource.fields
            .filter(({ type, name }) => type !== 'object' && name !== 'description')
            .map((field) => ({
              label: labelOfField(field.name),
              value: isEmpty(record[field.name]) ? null : (
                <CellValue field={field} value={record[field.name]} names={record.included} />
              ),
            }))}
        />
      </Section>
      {custom.length > 0 && (
        <Section title="Custom fields">
          <DescriptionList
            items={custom.map((name) => ({
              label: name,
              value: isEmpty(ownValue(values, name)) ? null : (
                <FieldValue field={name} value={ownValue(values, name)} />
              ),
            }))}
          />
        </Section>
      )}
    </>
  );
}

/** What every record has. */
export function RecordFacts({ record }: { record: InventoryRecord }) {
  return (
    <DescriptionList
      items={[
        { label: 'Version', value: String(record.version) },
        { label: 'Changed', value: <Time value={record.updatedAt} format="full" /> },
        { label: 'Created', value: <Time value={record.createdAt} format="full" /> },
      ]}
    />
  );
}
