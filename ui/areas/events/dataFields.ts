import type { JsonSchema } from '../../parts/schemaForm/shape.ts';

/** A field of the data of events, in words. */
export type DataField = { name: string; value: string; description: string };

const unionOf = ({ anyOf, oneOf }: JsonSchema): readonly JsonSchema[] | undefined => anyOf ?? oneOf;

/** What values a schema allows: `text or null`, `one of queued, running`, `list of text`. */
function valueText(schema: JsonSchema): string {
  const union = unionOf(schema);
  if (union) return union.map(valueText).join(' or ');
  if (schema.enum) return schema.enum.map(String).join(', ');
  if (schema.type === 'array')
    return typeof schema.items === 'object' ? `list of ${valueText(schema.items)}` : 'list';
  if (schema.format === 'date-time') return 'time';
  const names: Readonly<Record<string, string>> = { string: 'text', boolean: 'true or false' };
  return [schema.type ?? 'any value']
    .flat()
    .map((type) => names[type] ?? type)
    .join(' or ');
}

const descriptionOf = (schema: JsonSchema): string =>
  schema.description ??
  unionOf(schema)?.find(({ description }) => description !== undefined)?.description ??
  '';

/** The fields of a schema, those of objects in it below them: `source`, `source.kind`. */
export function fieldsOf(schema: JsonSchema, prefix = ''): DataField[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const isOptional = schema.required?.includes(name) !== true;
    const value = valueText(field);
    const own = {
      name: `${prefix}${name}`,
      value: isOptional ? `${value}, or missing` : value,
      description: descriptionOf(field),
    };
    return [own, ...fieldsOf(field, `${prefix}${name}.`)];
  });
}
