import fc from 'fast-check';
import type { InventoryRecord } from './inventory.ts';
import type { TestClient } from './client.ts';

/** What a list is asked: the parameters of its query by name, without those of the page. */
export type ListQuestion = Readonly<Record<string, string>>;

type Answer = {
  items: InventoryRecord[];
  nextCursor: string | null;
  count?: { value: number; exact: boolean } | null;
  facets?: Record<string, { values: { value: unknown; count: number }[]; exact: boolean } | null>;
};

/** The fields that a question may filter by, with values that some records have. */
export type Asked = {
  several: Readonly<Record<string, readonly string[]>>;
  ranges: Readonly<Record<string, readonly number[]>>;
  sorts: readonly string[];
};

const RANGES = ['gte', 'gt', 'lte', 'lt'] as const;

/** Arbitrary questions: up to three filters, and an order. */
export function questions({ several, ranges, sorts }: Asked): fc.Arbitrary<ListQuestion> {
  const equal = Object.entries(several).map(([field, values]) =>
    fc.record({
      name: fc.constantFrom(field, `${field}.not`),
      value: fc.subarray([...values], { minLength: 1 }).map((chosen) => chosen.join(',')),
    }),
  );
  const bounds = Object.entries(ranges).map(([field, values]) =>
    fc.record({
      name: fc.constantFrom(...RANGES.map((operator) => `${field}.${operator}`)),
      value: fc.constantFrom(...values.map(String)),
    }),
  );
  return fc
    .record({
      filters: fc.array(fc.oneof(...equal, ...bounds), { maxLength: 3 }),
      sort: fc.constantFrom(...sorts.flatMap((sort) => [sort, `-${sort}`])),
    })
    .map(({ filters, sort }) => ({
      ...Object.fromEntries(filters.map(({ name, value }) => [name, value])),
      sort,
    }));
}

const COMPARE: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  gte: (value, bound) => value >= bound,
  gt: (value, bound) => value > bound,
  lte: (value, bound) => value <= bound,
  lt: (value, bound) => value < bound,
};

function satisfies(record: InventoryRecord, name: string, text: string): boolean {
  const [field = '', operator] = name.split('.');
  const value = record[field] ?? null;
  const isListed = text
    .split(',')
    .includes(value === null ? 'none' : (value as string | number | boolean).toString());
  if (operator === undefined) return isListed;
  if (operator === 'not') return !isListed;
  return value !== null && COMPARE[operator]?.(Number(value), Number(text)) === true;
}

const matching = (records: readonly InventoryRecord[], question: ListQuestion, except?: string) =>
  records.filter((record) =>
    Object.entries(question).every(
      ([name, text]) =>
        name === 'sort' ||
        (except !== undefined && name.split('.')[0] === except) ||
        satisfies(record, name, text),
    ),
  );

type Value = string | number;

/** The ids that a list has, in its order: records without a value last, ties by id. */
export function expectedIds(records: readonly InventoryRecord[], question: ListQuestion): string[] {
  const { sort = '-createdAt' } = question;
  const direction = sort.startsWith('-') ? -1 : 1;
  const field = sort.replace('-', '').replace('createdAt', 'id');
  const valueOf = (record: InventoryRecord) => (record[field] ?? null) as Value | null;
  const compare = (a: Value, b: Value) => (a < b ? -1 : a > b ? 1 : 0);
  return matching(records, question)
    .toSorted((a, b) => {
      const [one, other] = [valueOf(a), valueOf(b)];
      if ((one === null) !== (other === null)) return one === null ? 1 : -1;
      const order = one === null || other === null ? 0 : compare(one, other);
      return direction * (order || compare(a.id, b.id));
    })
    .map(({ id }) => id);
}

/** The records of a question by the values of a field, without the filters on that field. */
export function expectedFacet(
  records: readonly InventoryRecord[],
  question: ListQuestion,
  field: string,
): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const record of matching(records, question, field)) {
    const value = record[field] ?? null;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

/** What the list answers: all its ids page by page, and the count and facets of the first page. */
export async function answerOf(
  client: TestClient,
  path: string,
  question: ListQuestion,
  { limit, facets }: { limit: number; facets: readonly string[] },
) {
  const query = new URLSearchParams({ ...question, limit: String(limit) });
  const first = await client
    .get<Answer>(`${path}?${query.toString()}&count=true&facets=${facets.join(',')}`)
    .expect(200);
  const ids = first.items.map(({ id }) => id);
  for (let cursor = first.nextCursor; cursor !== null;) {
    const page = await client
      .get<Answer>(`${path}?${query.toString()}&cursor=${cursor}`)
      .expect(200);
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  const counted = Object.entries(first.facets ?? {}).map(([field, facet]): [string, object] => [
    field,
    new Map(facet?.values.map(({ value, count }) => [value, count])),
  ]);
  return { ids, count: first.count, facets: Object.fromEntries(counted) };
}
