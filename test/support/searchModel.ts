import {
  contains,
  isBlock,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
  type Span,
} from '../../domain/inventory/cidr.ts';
import { isMacAddress } from '../../domain/inventory/fields.ts';
import { RESOURCE_NAMES } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { parseSearch, type SearchKind, type SearchQuery } from '../../domain/search/query.ts';
import type { TestClient } from './client.ts';
import type { Page } from './users.ts';

/** A record as a list shows it. */
type Listed = { id: string; [field: string]: unknown };

/** What a caller can list: the records of each kind, by their ids. */
export type Lists = ReadonlyMap<SearchKind, ReadonlyMap<string, Listed>>;

/** The lists in which the records of each kind are. */
const PATHS: readonly (readonly [SearchKind, readonly string[]])[] = [
  ...RESOURCE_NAMES.map(
    (name) =>
      [
        name,
        [
          `/api/inventory/${name}?`,
          ...(RESOURCES[name].sharable || RESOURCES[name].isPlatformPublic
            ? [`/api/inventory/${name}?shared=true&`]
            : []),
        ],
      ] as const,
  ),
  ['jobs', ['/api/jobs?']],
  ['schedules', ['/api/schedules?']],
  ['workflows', ['/api/workflows?']],
  ['users', ['/api/users?']],
  ['webhooks', ['/api/webhooks?']],
  ['backups', ['/api/backup?']],
];

type AnyList = Pick<Page<Listed>, 'nextCursor'> & { items?: Listed[]; backups?: Listed[] };

/** Reads all lists of a caller. What the caller may not list at all is empty. */
export async function readLists(client: TestClient): Promise<Lists> {
  const listed = await Promise.all(
    PATHS.map(async ([kind, paths]) => {
      const pages = await Promise.all(paths.map((path) => readPage(client, path)));
      return [kind, new Map(pages.flat().map((item) => [item.id, item]))] as const;
    }),
  );
  return new Map(listed);
}

async function readPage(client: TestClient, path: string): Promise<Listed[]> {
  const { status, body } = await client.get<AnyList>(`${path}limit=200`);
  if (status === 403) return [];
  if (status !== 200 || body.nextCursor !== null) throw new Error(`${path} ${status}`);
  return body.items ?? body.backups ?? [];
}

const LABELS: Readonly<Record<string, string>> = {
  jobs: 'type',
  workflows: 'title',
  users: 'username',
  webhooks: 'description',
  backups: 'label',
};

const isResource = (kind: SearchKind): kind is keyof typeof RESOURCES =>
  Object.hasOwn(RESOURCES, kind);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The label of a record: what its list shows, of a webhook without a description its host, or the id. */
export function labelOf(kind: SearchKind, item: Listed): string {
  const field = isResource(kind) ? RESOURCES[kind].labelField : (LABELS[kind] ?? 'name');
  const host = kind === 'webhooks' ? new URL(textOf(item.endpointUrl)).host : '';
  return textOf(item[field]) || host || item.id;
}

const TEXT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  schedules: ['name'],
  workflows: ['title'],
  users: ['username', 'displayName'],
};

/** The fields whose values a short text can equal. */
const NAMES = ['id', 'name', 'serial', 'assetTag', 'macAddress', 'model', 'label', 'rd', 'dnsName'];

const digitsOf = (mac: string): string => mac.toLowerCase().replaceAll(/[^0-9a-f]/g, '');

/** Whether a record matches by its words. */
function matchesText(kind: SearchKind, item: Listed, { text, words }: SearchQuery): boolean {
  const fields = isResource(kind) ? RESOURCES[kind].searchFields : TEXT_FIELDS[kind];
  if (!fields) return false;
  const lower = text.toLowerCase();
  const own = fields.map((field) => textOf(item[field]).toLowerCase());
  const all = own.join(' ');
  if (isMacAddress(text) && digitsOf(textOf(item.macAddress)) === digitsOf(text)) return true;
  if (kind === 'vlans' && String(item.vid) === text) return true;
  if (
    isResource(kind) &&
    NAMES.some((name) => fields.includes(name) && textOf(item[name]).toLowerCase() === lower)
  )
    return true;
  if (all.startsWith(lower) || labelOf(kind, item).toLowerCase().startsWith(lower)) return true;
  return (
    words.some(({ length }) => length >= 3) &&
    words.every((word) => all.includes(word.toLowerCase()))
  );
}

/** The addresses of a record that has some: a network, a range or one address. */
function spanOf(kind: SearchKind, item: Listed): Span | undefined {
  const host = (field: string) => parseHost(textOf(item[field]).split('/')[0] ?? '');
  if (kind === 'prefixes') {
    const block = parseBlock(textOf(item.cidr));
    return isBlock(block) ? block : undefined;
  }
  const first = host(kind === 'ip-addresses' ? 'address' : 'startAddress');
  const last = kind === 'ip-addresses' ? first : host('endAddress');
  return first && last && { family: first.family, first: first.value, last: last.value };
}

const isEqual = (one: Span, other: Span): boolean => contains(one, other) && contains(other, one);

/** What a text that means addresses means. */
function spanOfQuery({ network }: SearchQuery): Span | undefined {
  if (!network) return undefined;
  if (network.kind !== 'address') {
    const block = parseBlock(network.cidr);
    return isBlock(block) ? block : undefined;
  }
  const found = parseInterfaceAddress(network.host) ?? parseHost(network.host);
  return found && { family: found.family, first: found.value, last: found.value };
}

function matchesNetwork(
  kind: SearchKind,
  own: Span,
  { network }: SearchQuery,
  span: Span,
): boolean {
  const isRange = kind === 'ip-ranges';
  if (network?.kind === 'beginning')
    return contains(span, isRange ? { ...own, last: own.first } : own);
  if (network?.kind === 'network') return kind === 'prefixes' && isEqual(own, span);
  return isRange ? contains(own, span) : isEqual(own, span);
}

const NETWORKS: ReadonlySet<SearchKind> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

type Expected = {
  /** Kind, id and label of what is found. */
  items: string[];
  around: string[];
};

/** What a search must find in the lists of a caller, besides what is only spelled alike. */
export function expectedIn(lists: Lists, q: string): Expected {
  const query = parseSearch(q);
  const span = spanOfQuery(query);
  const found: Expected = { items: [], around: [] };
  for (const [kind, items] of lists)
    for (const item of items.values()) {
      const entry = [kind, item.id, labelOf(kind, item)].join(' ');
      if (query.id !== undefined) {
        if (item.id === query.id) found.items.push(entry);
        continue;
      }
      if (!span || !NETWORKS.has(kind)) {
        if (matchesText(kind, item, query)) found.items.push(entry);
        continue;
      }
      const own = spanOf(kind, item);
      if (own && matchesNetwork(kind, own, query, span)) found.items.push(entry);
      else if (
        own &&
        kind === 'prefixes' &&
        query.network?.kind !== 'beginning' &&
        contains(own, span)
      )
        found.around.push([item.id, labelOf(kind, item)].join(' '));
    }
  return { items: found.items.toSorted(), around: found.around.toSorted() };
}
