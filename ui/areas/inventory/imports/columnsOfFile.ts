/** What there is to know of a resource to read the columns of its files. */
export type FileResource = {
  name: string;
  plural: string;
  idPrefix: string | null;
  lookup: readonly string[];
  fields: readonly {
    name: string;
    reference: string | null;
    required: boolean;
    derived: boolean;
  }[];
};

/** The columns of an export that an import ignores. */
const IGNORED = ['createdAt', 'updatedAt', 'version'];

/** The cells of the first line of a CSV file (RFC 4180). */
export function headerCells(text: string): string[] {
  const cells: string[] = [];
  let cell = '';
  let isQuoted = false;
  const body = text.startsWith('\uFEFF') ? text.slice(1) : text;
  for (let at = 0; at < body.length; at += 1) {
    const char = body.charAt(at);
    if (isQuoted && char === '"' && body.charAt(at + 1) === '"') cell += body.charAt((at += 1));
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && char === ',') cells.push(cell);
    else if (!isQuoted && (char === '\n' || char === '\r')) break;
    else cell += char;
    if (!isQuoted && char === ',') cell = '';
  }
  return [...cells, cell].map((each) => each.trim());
}

const lookupsOf = (all: readonly FileResource[], reference: string | null): readonly string[] =>
  all.find(({ name }) => name === reference)?.lookup ?? [];

/** The columns that a file of a resource may have, without those that an import ignores. */
export const columnsOf = (resource: FileResource, all: readonly FileResource[]): string[] => [
  'id',
  ...resource.fields
    .filter(({ derived }) => !derived)
    .flatMap(({ name, reference }) => [
      name,
      ...lookupsOf(all, reference).map((by) => `${name}.${by}`),
    ]),
];

/** The columns that a resource does not have. */
export function unknownColumns(
  columns: readonly string[],
  resource: FileResource,
  all: readonly FileResource[],
): string[] {
  const derived = resource.fields.filter((field) => field.derived).map(({ name }) => name);
  const known = new Set([...columnsOf(resource, all), ...derived, ...IGNORED]);
  return columns.filter((column) => !known.has(column));
}

/** The resources whose columns a file has, with all that a new record needs. */
export const resourcesWith = (
  columns: readonly string[],
  all: readonly FileResource[],
): readonly FileResource[] =>
  all.filter(
    (resource) =>
      unknownColumns(columns, resource, all).length === 0 &&
      (columns.includes('id') ||
        resource.fields
          .filter(({ required }) => required)
          .every(({ name }) => columns.some((column) => column.split('.')[0] === name))),
  );

/** What is wrong with the columns of a file, before it is sent; undefined if nothing is. */
export function columnsProblem(
  columns: readonly string[],
  resource: FileResource,
  all: readonly FileResource[],
): string | undefined {
  const [only = ''] = columns;
  if (columns.length === 1 && /[;\t]/.test(only))
    return `Its columns are separated by ${only.includes(';') ? 'semicolons' : 'tabs'}. Save the file with commas.`;
  const unknown = unknownColumns(columns, resource, all);
  if (unknown.length > 0)
    return `There are no columns ${unknown.map((each) => `“${each.slice(0, 60)}”`).join(', ')} of ${resource.plural}.`;
  const fields = columns.map((column) => column.split('.')[0]);
  const repeated = fields.find((name, at) => fields.indexOf(name) < at);
  return repeated === undefined ? undefined : `The field “${repeated}” has two columns.`;
}

/**
 * The first line of a file of a resource: what a new record needs first, and records named by a field of
 * theirs instead of by an id.
 */
export function templateOf(resource: FileResource, all: readonly FileResource[]): string {
  const fields = resource.fields.filter(({ derived }) => !derived);
  const ordered = [
    ...fields.filter(({ required }) => required),
    ...fields.filter(({ required }) => !required),
  ];
  const names = ordered.map(({ name, reference }) => {
    const [by] = lookupsOf(all, reference);
    return by === undefined ? name : `${name}.${by}`;
  });
  return `${[...(resource.idPrefix === null ? ['id'] : []), ...names].join(',')}\n`;
}
