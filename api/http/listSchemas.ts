import { Type, type TObject, type TSchema } from 'typebox';
import { MAX_COUNTED, MAX_FACET_VALUES } from '../../domain/shared/lists.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';
import { parametersOf, type FieldDeclaration } from './listFields.ts';
import { listSchema, pageQuery } from './pagination.ts';
import { Nullable } from './schemas.ts';

type Properties = Record<string, TSchema>;

/** The time that ids of most records start with. */
export const ID_TIME = 'createdAt';

const Count = Nullable(
  Type.Object(
    { value: Type.Integer(), exact: Type.Boolean() },
    {
      title: 'ListCount',
      description: `With \`count\`: the number of records of all pages. With \`exact: false\` there are more than ${MAX_COUNTED}; null if counting took too long, or if the caller has used up its budget of expensive reads.`,
      additionalProperties: false,
    },
  ),
);

const Facet = Type.Union([
  Type.Object(
    {
      values: Type.Array(
        Type.Object(
          {
            value: Type.Union([Type.String(), Type.Boolean(), Type.Number(), Type.Null()]),
            count: Type.Integer(),
          },
          { title: 'ListFacetValue', additionalProperties: false },
        ),
        { description: `The most frequent values, at most ${MAX_FACET_VALUES}.` },
      ),
      exact: Type.Boolean({
        description: `false: only the newest ${MAX_COUNTED} records are counted.`,
      }),
      others: Type.Integer({ description: 'The number of records with other values.' }),
    },
    { title: 'ListFacet', additionalProperties: false },
  ),
  Type.Null(),
]);

const Facets = Type.Record(Type.String(), Facet, {
  title: 'ListFacets',
  description:
    'With `facets`: the number of records by the values of each field, without the filters on that field; null if counting took too long, or if the caller has used up its budget of expensive reads.',
});

const names = (values: readonly string[], title: string, description: string): TSchema =>
  Type.Optional(
    Type.Array(Type.Enum([...values], { title }), {
      minItems: 1,
      maxItems: 100,
      [COMMA_SEPARATED]: true,
      description,
    }),
  );

type Described = {
  item: TSchema;
  title: string;
  fields: Readonly<Record<string, FieldDeclaration>>;
  own?: Properties;
  more?: Properties;
  idTime?: string | null;
  defaultSort?: string;
};

/** The order of a list without `sort`: newest first, if nothing else is declared. */
export const defaultSortOf = ({
  idTime,
  defaultSort = `-${idTime ?? ID_TIME}`,
}: Pick<Described, 'idTime' | 'defaultSort'>): string => defaultSort;

const fieldsWith = ({ fields }: Described, trait: 'sort' | 'facet'): string[] =>
  Object.entries(fields)
    .filter(([, field]) => field[trait])
    .map(([name]) => name);

/** The parameters that choose the records of a list. */
export function filterParameters({ fields, own }: Described): Properties {
  const comparisons = Object.entries(fields).map(([name, field]) => parametersOf(name, field));
  return Object.assign({ ...own }, ...comparisons) as Properties;
}

/** The query parameters of a list. The choices of `DeviceList` are `DeviceSort` and the like. */
export function listQuery(described: Described): TObject {
  const noun = described.title.replace(/(?:List|Page)$/, '');
  const facets = fieldsWith(described, 'facet');
  const { idTime = ID_TIME } = described;
  const defaultSort = defaultSortOf(described);
  const times = idTime === null ? [] : [idTime];
  const sorts = new Set([...times, ...fieldsWith(described, 'sort')]);
  const orders = new Set([defaultSort, ...[...sorts].flatMap((name) => [name, `-${name}`])]);
  const properties: Properties = {
    ...filterParameters(described),
    sort: Type.Enum([...orders], {
      title: `${noun}Sort`,
      default: defaultSort,
      description: 'A hyphen reverses the order. Records without a value are last.',
    }),
    fields: names(
      Object.keys((described.item as TObject).properties),
      `${noun}Field`,
      'The fields of each record in the response, besides `id`.',
    ),
    count: Type.Optional(Type.Boolean({ description: 'Counts the records of all pages.' })),
    ...(facets.length > 0 && {
      facets: names(facets, `${noun}Facet`, 'Counts the records by the values of these fields.'),
    }),
    ...pageQuery,
  };
  return Type.Object(properties, { additionalProperties: false });
}

/** The schema of the response of a list. */
export const listResponseSchema = (described: Described): TObject =>
  Type.Object(
    {
      ...listSchema(described.item, described.title).properties,
      count: Type.Optional(Count),
      ...(fieldsWith(described, 'facet').length > 0 && { facets: Type.Optional(Facets) }),
      ...described.more,
    },
    { title: described.title },
  );
