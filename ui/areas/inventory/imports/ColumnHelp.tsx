import { Button } from '@mantine/core';
import { downloadText } from '../../../parts/clipboard.ts';
import { Icon } from '../../../parts/icons.tsx';
import { nounOf } from '../../../../domain/shared/nouns.ts';
import { Section } from '../../../parts/Section.tsx';
import type { Resource, ResourceField } from '../inventoryQueries.ts';
import { CUSTOM } from '../recordChanges.ts';
import { useResourceOf } from '../resources.ts';
import { whereOfNew } from '../whereOf.ts';
import { templateOf } from './columnsOfFile.ts';
import classes from './Imports.module.css';

type Props = {
  resource: Resource | undefined;
  all: readonly Resource[];
  /** The tenant of the records whose rows name none. */
  tenant: string;
};

/** What a cell of a column has. */
function cellText({ reference, choices, type, rules }: ResourceField): string {
  if (reference !== null) return `The id of one of the ${nounOf(reference, 2)}`;
  if (choices !== null) return `One of ${choices.join(', ')}`;
  if (type === 'texts') return 'Values with commas between them, in quotes, or a JSON list';
  if (type === 'object') return 'A JSON object';
  if (type === 'boolean') return 'true or false';
  // Every text has the last one.
  return rules.filter((rule) => !rule.includes('U+0000')).join(', ');
}

/** The columns that a file of the resource may have, and a file with their names. */
export function ColumnHelp({ resource, ...props }: Props) {
  if (resource === undefined)
    return (
      <Section title="Columns">
        <p className={classes.muted}>Choose a resource: its columns are listed here.</p>
      </Section>
    );
  return <Columns key={resource.name} resource={resource} {...props} />;
}

/** The names in the object of custom fields, and whose they are. */
function CustomNames({ resource, tenant }: Omit<ColumnsProps, 'all'>) {
  const { tenantId } = whereOfNew(resource, {}, tenant);
  const { customFields } = useResourceOf(resource, tenantId) ?? { customFields: [] };
  if (customFields.length === 0) return null;
  return (
    <>
      , for the tenant {tenantId} with
      {customFields.map(({ name }) => (
        <code key={name}>{` ${name}`}</code>
      ))}
      ; a row with another tenant has the custom fields of that one
    </>
  );
}

type ColumnsProps = Props & { resource: Resource };

function Columns({ resource, all, tenant }: ColumnsProps) {
  const fields = resource.fields.filter(({ derived }) => !derived);
  const lookups = (reference: string | null) =>
    all.find(({ name }) => name === reference)?.lookup ?? [];
  return (
    <Section
      title={`Columns of ${resource.plural}`}
      actions={
        <Button
          variant="default"
          leftSection={<Icon name="download" size={14} />}
          onClick={() =>
            downloadText(`${resource.name}.csv`, [templateOf(resource, all)], 'text/csv')
          }
        >
          Template
        </Button>
      }
    >
      <p className={classes.muted}>
        A row with an <code>id</code> changes that record; any other row creates one. Records that a
        row refers to must exist, or come before it.
      </p>
      <dl className={classes.columns}>
        {fields.map((field) => (
          <div key={field.name}>
            <dt>
              <code>{field.name}</code>
              {field.required && <span className={classes.needed}>needed</span>}
            </dt>
            <dd>
              {cellText(field)}
              {field.name === CUSTOM && <CustomNames resource={resource} tenant={tenant} />}
              {lookups(field.reference).length > 0 && (
                <>
                  , or{' '}
                  {lookups(field.reference).map((by) => (
                    <code key={by}>{` ${field.name}.${by}`}</code>
                  ))}
                </>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
