import type { Block } from '../../../../domain/inventory/cidr.ts';
import { byNetwork, networkOf } from './networks.ts';
import { FIRST_PART, type Part } from './treeParts.ts';

/** A prefix as the tree has it; without id and status where the user may not read it. */
type Child = { id: string | null; cidr: string };

/** A page of what is directly in a prefix. */
type Page<C extends Child> = {
  children: readonly C[];
  free: readonly string[];
  /** False: `free` may include addresses that are in use. */
  exact: boolean;
  /** False: `free` has the first free networks only. */
  complete: boolean;
  nextCursor: string | null;
};

/** What a network without a prefix is called. */
export const freeText = ({ exact }: { exact: boolean }): string => (exact ? 'Free' : 'No prefix');

/** A row of the tree of an address space. */
export type SpaceRow<C extends Child> =
  | { kind: 'prefix'; key: string; prefix: C; children: SpaceRow<C>[] | undefined }
  /** `exact`: false if it may have addresses that are in use. */
  | { kind: 'free'; key: string; cidr: string; exact: boolean }
  | NoteRow
  | MoreRow;

/** Says what the rows before it leave out. */
type NoteRow = { kind: 'note'; key: string; text: string };

/** Represents a part of what is in the prefix `of`. `isNext`: it follows what is shown. */
type MoreRow = {
  kind: 'more';
  key: string;
  of: string;
  part: Part;
  text: string;
  isNext: boolean;
};

/** What is known of what is directly in a prefix: the parts that were asked for. */
export type Known<C extends Child> = {
  parts: readonly { part: Part; page: Page<C> | undefined }[];
  /** Prefixes that are shown whether their part was read or not. */
  pinned: readonly C[];
};

/** The key of a prefix in a tree; others than the user's may have the same network. */
export const prefixKey = ({ id, cidr }: Child): string => id ?? `other ${cidr}`;

export const isSamePart = (one: Part, other: Part): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** Pages that follow each other without a gap; `next` leads on, and is null at the end. */
type Run<C extends Child> = { pages: readonly Page<C>[]; next: string | null };

const pageAt = <C extends Child>({ parts }: Known<C>, wanted: Part): Page<C> | undefined =>
  parts.find(({ part }) => isSamePart(part, wanted))?.page;

/** The pages from one on: a change may have moved the start of those after it. */
function runFrom<C extends Child>(known: Known<C>, first: Part): Run<C> | undefined {
  const pages: Page<C>[] = [];
  let part = first;
  for (;;) {
    const page = pageAt(known, part);
    if (page) pages.push(page);
    const next = page ? page.nextCursor : 'cursor' in part ? part.cursor : null;
    if (!page || next === null) return pages.length === 0 ? undefined : { pages, next };
    part = { cursor: next };
  }
}

/** True for a run to the end. */
const isWhole = <C extends Child>({ next }: Run<C>): boolean => next === null;

const firstOf = <C extends Child>({ pages }: Run<C>): string | undefined =>
  pages.find(({ children }) => children.length > 0)?.children[0]?.cidr;

const lastOf = <C extends Child>({ pages }: Run<C>): string | undefined =>
  pages.findLast(({ children }) => children.length > 0)?.children.at(-1)?.cidr;

/** The pages around the network that was last led to. */
function jumpOf<C extends Child>(known: Known<C>): Run<C> | undefined {
  const start = known.parts.findLast(({ part, page }) => 'from' in part && page);
  let run = start && runFrom(known, start.part);
  for (let before = run && firstOf(run); run && before !== undefined; before = firstOf(run)) {
    const page = pageAt(known, { before });
    if (!page || page.children.length === 0) break;
    run = { pages: [page, ...run.pages], next: run.next };
  }
  return run;
}

/** True if the first network is not before the second. */
function isNotBefore(one: string | undefined, other: string | undefined): boolean {
  const [a, b] = [networkOf(one ?? ''), networkOf(other ?? '')];
  return a !== undefined && b !== undefined && byNetwork(a, b) >= 0;
}

const MAX_PARSED = 50_000;
const parsed = new Map<string, Block | undefined>();

/** The network of a text. A tree has the same ones each time that it is drawn, thousands of them. */
function blockOf(cidr: string): Block | undefined {
  if (!parsed.has(cidr)) {
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(cidr, networkOf(cidr));
  }
  return parsed.get(cidr);
}

type RowOf<C extends Child> = (prefix: C) => SpaceRow<C>;

/** The rows of pages by network, each once. */
function rowsOf<C extends Child>(id: string, runs: readonly Run<C>[], rowOf: RowOf<C>) {
  const pages = runs.flatMap((run) => run.pages);
  const children = pages.flatMap((page) => page.children);
  const free = new Map(pages.flatMap((page) => page.free.map((cidr) => [cidr, page.exact])));
  const unique = [...new Map(children.map((child) => [prefixKey(child), child])).values()];
  const rows = [
    ...unique.map((child) => ({ row: rowOf(child), block: blockOf(child.cidr) })),
    ...[...free].map(([cidr, exact]) => ({
      row: { kind: 'free', key: `free ${id} ${cidr}`, cidr, exact } as const,
      block: blockOf(cidr),
    })),
  ];
  rows.sort((one, other) => (one.block && other.block ? byNetwork(one.block, other.block) : 0));
  return [...rows.map(({ row }): SpaceRow<C> => row), ...notesOn(id, pages)];
}

/** What the free networks of pages leave out. */
function notesOn<C extends Child>(id: string, pages: readonly Page<C>[]): NoteRow[] {
  const texts = [
    ...(pages.every(({ complete }) => complete) ? [] : ['More free networks are not shown']),
    ...(pages.every(({ exact }) => exact)
      ? []
      : ['Networks without a prefix may have addresses in use']),
  ];
  return texts.map((text) => ({
    kind: 'note',
    key: `note ${id} ${pages[0]?.nextCursor} ${text}`,
    text,
  }));
}

function moreRow(id: string, part: Part, text: string, isNext = false): MoreRow {
  const key = `more ${id} ${JSON.stringify(part)}`;
  return { kind: 'more', key, of: id, part, text, isNext };
}

/** What follows the last row: it is read when it comes into view. */
const nextRow = <C extends Child>(id: string, { next }: Run<C>): SpaceRow<C>[] =>
  next === null ? [] : [moreRow(id, { cursor: next }, 'Reading more …', true)];

/**
 * The rows of what is directly in a prefix: its children and the free networks between them, from its start
 * and around the network that was led to. Undefined until the first page is read.
 */
export function rowsIn<C extends Child>(
  id: string,
  known: Known<C>,
  rowOf: RowOf<C>,
): SpaceRow<C>[] | undefined {
  const head = runFrom(known, FIRST_PART);
  if (!head) return undefined;
  const headRows = rowsOf(id, [head], rowOf);
  if (isWhole(head)) return headRows;
  const [after, jump] = [
    moreRow(id, { cursor: head.next }, `Show those after ${lastOf(head)}`),
    jumpOf(known),
  ];
  const start = jump && firstOf(jump);
  if (!jump || start === undefined) {
    const pinned = missingFrom(known).map(rowOf);
    return pinned.length === 0
      ? [...headRows, ...nextRow(id, head)]
      : [...headRows, after, ...pinned];
  }
  if (isNotBefore(lastOf(head), start)) {
    const longer = isNotBefore(lastOf(head), lastOf(jump)) ? head : jump;
    return [...rowsOf(id, [head, jump], rowOf), ...nextRow(id, longer)];
  }
  const before = moreRow(id, { before: start }, `Show those before ${start}`);
  return [...headRows, after, before, ...rowsOf(id, [jump], rowOf), ...nextRow(id, jump)];
}

/** The pinned prefixes that no page has which was read; none while the first one is being read. */
export function missingFrom<C extends Child>(known: Known<C>): C[] {
  const head = runFrom(known, FIRST_PART);
  if (head === undefined || isWhole(head)) return [];
  const read = known.parts.flatMap(({ page }) => page?.children ?? []);
  const keys = new Set(read.map(prefixKey));
  return known.pinned.filter((prefix) => !keys.has(prefixKey(prefix)));
}
