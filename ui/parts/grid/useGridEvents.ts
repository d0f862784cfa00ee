import {
  useEffect,
  useRef,
  type ClipboardEvent,
  type FocusEvent,
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
} from 'react';
import { localNow } from '../clock.ts';
import { usePreferences } from '../preferences.tsx';
import { gridAction, type GridAction, type GridSize } from './keys.ts';
import { extendTo, toggleAll, toggleKey, type Selection } from './selection.ts';
import type { TreeRow } from './tree.ts';
import { rowsAsTsv } from './rowsAsTsv.ts';
import type { DataGridProps, GridColumn } from './types.ts';
import type { GridFocus } from './useGridFocus.ts';

type Options<Row> = Pick<
  DataGridProps<Row>,
  'selection' | 'onSelectionChange' | 'onOpen' | 'tree' | 'rowKey' | 'main'
> & {
  scroller: RefObject<HTMLDivElement | null>;
  focus: GridFocus;
  size: GridSize;
  shown: readonly GridColumn<Row>[];
  rowAt: (index: number) => Row | undefined;
  treeAt: (index: number) => TreeRow<Row> | undefined;
  keyAt: (index: number) => string | undefined;
  order: () => string[];
};

const CONTROLS = 'a[href], button, input, select, textarea, summary';
const TEXT_FIELDS = 'input:not([type=checkbox]), textarea, select, [contenteditable]';

/** The cell in which an event has happened. */
function cellOf(target: EventTarget): { row: number; column: number } | undefined {
  if (!(target instanceof Element)) return undefined;
  const cell = target.closest<HTMLElement>('[data-column]');
  const row = cell?.closest<HTMLElement>('[data-row]');
  return cell && row
    ? { row: Number(row.dataset.row), column: Number(cell.dataset.column) }
    : undefined;
}

/** True when `g` was pressed a moment before: the next letter opens a page. */
function usePrefixKey(): (key: string) => boolean {
  const last = useRef({ key: '', at: 0 });
  return (key) => {
    const { key: before, at } = last.current;
    last.current = { key, at: localNow() };
    return before === PREFIX && localNow() - at < 1_500;
  };
}

function useSelecting<Row>({ selection, onSelectionChange, order, keyAt }: Options<Row>) {
  const anchor = useRef<string | null>(null);
  const apply = (change: (now: Selection) => Selection) => {
    if (!selection || !onSelectionChange) return;
    const next = change({ keys: selection, anchor: anchor.current });
    anchor.current = next.anchor;
    onSelectionChange(next.keys);
  };
  return {
    toggle: (row: number) => {
      const key = keyAt(row);
      if (key !== undefined) apply((now) => toggleKey(now, key));
    },
    extend: (row: number) => {
      const key = keyAt(row);
      if (key !== undefined) apply((now) => extendTo(now, order(), key));
    },
    all: () => apply((now) => toggleAll(now, order())),
    clear: () => apply(() => ({ keys: new Set(), anchor: null })),
  };
}

/** What can be asked for at a row: open it, use the control of a cell, open or close its children. */
function useRowActions<Row>({ scroller, focus, rowAt, treeAt, onOpen, tree }: Options<Row>) {
  const { at } = focus;
  const open = (index: number) => {
    const row = rowAt(index);
    if (row !== undefined) onOpen?.(row);
  };
  return {
    open,
    activate: () => {
      const cell = scroller.current?.querySelector(
        `[data-row="${at.row}"] [data-column="${at.column}"]`,
      );
      const control = cell?.querySelector<HTMLElement>(CONTROLS);
      if (control) control.click();
      else open(at.row);
    },
    expand: (index: number, isOpen: boolean) => {
      const item = treeAt(index);
      if (!tree || !item) return;
      if (!isOpen && !item.isExpanded) {
        if (item.parent >= 0) focus.moveTo({ row: item.parent, column: 0 });
        return;
      }
      const next = new Set(tree.expanded);
      if (isOpen) next.add(item.key);
      else next.delete(item.key);
      tree.onExpandedChange(next);
    },
  };
}

type Handlers<Row> = {
  selecting: ReturnType<typeof useSelecting<Row>>;
  row: ReturnType<typeof useRowActions<Row>>;
};

/** Does what a key asks for. Returns false where it means nothing, so that the page gets the key. */
function runAction<Row>(
  options: Options<Row>,
  { selecting, row }: Handlers<Row>,
  action: GridAction,
) {
  const { focus, size, selection } = options;
  const { at } = focus;
  switch (action.kind) {
    case 'move':
      if (action.extends && selection && action.to.row >= 0) selecting.extend(action.to.row);
      focus.moveTo(action.to);
      return true;
    case 'open':
    case 'activate':
      if (at.row < 0 || size.rows === 0) return false;
      if (action.kind === 'open') row.open(at.row);
      else row.activate();
      return true;
    case 'select':
      if (!selection || at.row < 0) return false;
      selecting.toggle(at.row);
      return true;
    case 'selectAll':
      if (!selection) return false;
      selecting.all();
      return true;
    case 'clear':
      if (!selection || selection.size === 0) return false;
      selecting.clear();
      return true;
    case 'expand':
    case 'collapse':
      row.expand(at.row, action.kind === 'expand');
      return true;
  }
}

function useKeys<Row>(options: Options<Row>, handlers: Handlers<Row>) {
  const { focus, size, treeAt, tree } = options;
  const isPrefixed = usePrefixKey();
  return (event: KeyboardEvent | globalThis.KeyboardEvent): void => {
    const { key, shiftKey: shift, altKey: alt, target } = event;
    if (event.defaultPrevented || isPrefixed(key)) return;
    const control = event.ctrlKey || event.metaKey;
    // A focused control of a cell or header keeps the keys that use it.
    const isOnControl = target instanceof Element && target.closest(CONTROLS) !== null;
    if (isOnControl && (key === 'Enter' || key === ' ')) return;
    if (target instanceof Element && target.closest(TEXT_FIELDS)) return;
    const item = treeAt(focus.at.row);
    const focused = {
      isTree: tree !== undefined,
      isExpandable: item?.isExpandable ?? false,
      isExpanded: item?.isExpanded ?? false,
    };
    const action = gridAction({ key, shift, control, alt }, focus.at, size, focused);
    if (action && runAction(options, handlers, action)) event.preventDefault();
  };
}

const hasMarkedText = (): boolean => !(document.getSelection()?.isCollapsed ?? true);

function clicked<Row>(event: MouseEvent, options: Options<Row>, { selecting, row }: Handlers<Row>) {
  const { target, shiftKey, ctrlKey, metaKey } = event;
  const { selection, treeAt } = options;
  const cell = cellOf(target);
  if (!cell || !(target instanceof Element)) return;
  const isBox = target.closest('[data-check]') !== null;
  const isIn = (selector: string) => target.closest(selector) !== null;
  if (isIn('[data-check-all]')) selecting.all();
  else if (cell.row < 0) return;
  else if (isIn('[data-twist]')) row.expand(cell.row, !(treeAt(cell.row)?.isExpanded ?? false));
  else if (!isBox && isIn(CONTROLS)) return;
  else if (selection && shiftKey) selecting.extend(cell.row);
  // The whole first cell selects, not only the small box in it.
  else if (isBox || (selection && (ctrlKey || metaKey || cell.column === 0)))
    selecting.toggle(cell.row);
  // Text that was marked with the pointer is to be copied, not opened.
  else if (!hasMarkedText()) row.open(cell.row);
}

function copyRows<Row>(event: ClipboardEvent, options: Options<Row>): void {
  const { selection, order, rowAt, focus, shown } = options;
  if (hasMarkedText()) return;
  const keys = selection && selection.size > 0 ? order() : [];
  const selected = keys.flatMap((key, index) => (selection?.has(key) === true ? [index] : []));
  const indexes = selected.length > 0 ? selected : [focus.at.row];
  const rows = indexes.flatMap((index) => rowAt(index) ?? []);
  if (rows.length === 0) return;
  event.clipboardData.setData('text/plain', rowsAsTsv(rows, shown));
  event.preventDefault();
}

/** What keys, clicks and copies do in a grid. All rows share the handlers. */
export function useGridEvents<Row>(options: Options<Row>) {
  const { focus, size, selection, main } = options;
  const handlers = { selecting: useSelecting(options), row: useRowActions(options) };
  const onKeyDown = useKeys(options, handlers);
  const { singleKeys } = usePreferences();
  usePageKeys(main === true && singleKeys, onKeyDown, focus, size.rows);
  return {
    onKeyDown,
    onFocus: ({ target }: FocusEvent) => {
      const cell = cellOf(target);
      if (cell) focus.note(cell);
    },
    onClick: (event: MouseEvent) => clicked(event, options, handlers),
    onMouseDown: (event: MouseEvent) => {
      // Shift would mark the text between two clicks.
      if (event.shiftKey && selection) event.preventDefault();
    },
    onCopy: (event: ClipboardEvent) => copyRows(event, options),
  };
}

const PAGE_KEYS = new Set(['j', 'k', 'x', 'e']);
/** The key before the letter of a page. */
const PREFIX = 'g';

/** The letters of the main grid of a page work while nothing has the focus. */
function usePageKeys(
  isMain: boolean,
  pressed: (event: globalThis.KeyboardEvent) => void,
  focus: GridFocus,
  rows: number,
): void {
  const latest = useRef({ pressed, focus, rows });
  useEffect(() => void (latest.current = { pressed, focus, rows }));
  useEffect(() => {
    if (!isMain) return undefined;
    const listen = (event: globalThis.KeyboardEvent) => {
      const now = latest.current;
      const isFree = document.activeElement === document.body;
      if (!isFree || now.rows === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      // The first letter takes the focus into the list.
      if (PAGE_KEYS.has(event.key) || event.key === PREFIX) now.pressed(event);
      if (event.defaultPrevented && event.key !== 'j' && event.key !== 'k')
        now.focus.moveTo(now.focus.at);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, [isMain]);
}
