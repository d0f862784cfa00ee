import { isRecordId, recordPath } from '../../parts/recordIds.ts';

/** The kind of the choice that opens the page with all matches. */
export const SEARCH_PAGE = 'search';

/** What the palette offers to open. */
export type Choice = {
  /** Different for records of different kinds with one id. */
  key: string;
  kind: string;
  label: string;
  detail: string;
  path: string;
};

/** True for what the text alone leads to: the service need not have answered. */
export const isOfText = ({ kind }: Choice): boolean => kind === 'page' || kind === 'id';

/** A record that the service has found. */
type Item = { id: string; label: string; description: string; tenantId: string | null };

type Found = { items: readonly (Item & { kind: string })[]; around: readonly Item[] };

/** `device-types` as a reader says it, of one record: `device type`. */
const kindInWords = (kind: string): string =>
  kind
    .replaceAll('-', ' ')
    .replace(/addresses$/, 'address')
    .replace(/prefixes$/, 'prefix')
    .replace(/ies$/, 'y')
    .replace(/(?<!s)s$/, '');

const keyOf = (kind: string, id: string): string => `${kind} ${id}`;

const matches = (label: string, words: readonly string[]): boolean =>
  words.every((word) => label.toLowerCase().includes(word));

/** Pages whose name has the text, then the record of an id, then what the service has found. */
export function matchingChoices(
  text: string,
  entries: readonly { label: string; to: string }[],
  found: Found | undefined,
  { hasPage, tenant }: { hasPage: (path: string) => boolean; tenant: string },
): Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const pages = entries
    .filter(({ label }) => matches(label, words))
    .map(({ label, to }): Choice => ({ key: to, kind: 'page', label, detail: '', path: to }));
  const id = text.trim().toLowerCase();
  if (words.length === 0) return pages;
  const choiceOf = (kind: string, item: Item, words = kindInWords(kind)): Choice => ({
    key: keyOf(kind, item.id),
    kind: words,
    label: item.label,
    // That of the session is what the user expects.
    detail: [item.description, item.tenantId === tenant ? '' : item.tenantId]
      .filter(Boolean)
      .join(' · '),
    path: recordPath(item.id, kind),
  });
  const records = (found?.items ?? []).map((item) => choiceOf(item.kind, item));
  const around = (found?.around ?? []).map((item) => choiceOf('prefixes', item, 'network of it'));
  const others = [
    ...records,
    ...around.filter(({ key }) => !records.some((each) => each.key === key)),
  ];
  const isUnknownId = isRecordId(id) && !others.some(({ path }) => path === recordPath(id));
  return [
    ...pages,
    ...(isUnknownId ? [{ key: id, kind: 'id', label: id, detail: '', path: recordPath(id) }] : []),
    ...others,
    ...(hasPage('/search')
      ? [
          {
            key: 'search',
            kind: SEARCH_PAGE,
            label: `All that matches “${text.trim()}”`,
            detail: '',
            path: `/search?${new URLSearchParams({ q: text.trim() }).toString()}`,
          },
        ]
      : []),
  ];
}
