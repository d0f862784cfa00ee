import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';
import { clampPosition, type Position } from './keys.ts';

export type GridFocus = {
  /** The cell that has, or would get, the focus. Its row is drawn also when it is out of view. */
  at: Position;
  /** Increases whenever the focus is to be moved to the cell. */
  request: number;
  /** Moves the focus to a cell, and the cell into view. */
  moveTo: (to: Position) => void;
  /** Notes that the focus has come to a cell in another way. */
  note: (at: Position) => void;
};

type Size = { rows: number; columns: number };
type State = { at: Position; key: string | undefined; request: number };

/** Where a record is now, if the rows have changed. */
function follow({ at, key }: State, rows: number, keyAt: (row: number) => string | undefined) {
  if (key === undefined || at.row < 0 || keyAt(at.row) === key) return at;
  for (let row = 0; row < rows; row += 1) if (keyAt(row) === key) return { ...at, row };
  return at;
}

/**
 * The position of the roving focus of a grid. It stays on its record when rows come and go above it, and
 * on the nearest one when its record is deleted.
 */
export function useGridFocus(
  { rows, columns }: Size,
  keyAt: (row: number) => string | undefined,
): GridFocus {
  const [state, setState] = useState<State>({
    at: { row: 0, column: 0 },
    key: undefined,
    request: 0,
  });
  const at = clampPosition(follow(state, rows, keyAt), { rows, columns });
  const note = useCallback(
    (to: Position) =>
      setState((old) => {
        const key = keyAt(to.row);
        const isSame = old.at.row === to.row && old.at.column === to.column && old.key === key;
        return isSame ? old : { ...old, at: to, key };
      }),
    [keyAt],
  );
  const moveTo = useCallback(
    (to: Position) =>
      setState(({ request }) => ({ at: to, key: keyAt(to.row), request: request + 1 })),
    [keyAt],
  );
  return { at, request: state.request, moveTo, note };
}

const selector = ({ row, column }: Position): string =>
  `[data-row="${row}"] [data-column="${column}"]`;

/** Sets the focus to a cell: to the control of a header, or to the cell itself. */
function focusCell(grid: HTMLElement | null, at: Position): void {
  const cell = grid?.querySelector<HTMLElement>(selector(at));
  const target = cell?.querySelector<HTMLElement>('[data-focus]') ?? cell;
  // The row has been scrolled into view below the header; the browser would put it under it.
  target?.focus({ preventScroll: true });
  if (grid && cell) showColumn(grid, cell);
}

/** Scrolls sideways, as far as a cell is out of view. */
function showColumn(grid: HTMLElement, cell: HTMLElement): void {
  const inner = cell.getBoundingClientRect();
  const outer = grid.getBoundingClientRect();
  if (inner.left < outer.left) grid.scrollLeft -= outer.left - inner.left;
  else if (inner.right > outer.right) grid.scrollLeft += inner.right - outer.right;
}

/** Moves the focus where the grid wants it, and takes it back when the row that had it is removed. */
export function useFocusedCell(
  grid: RefObject<HTMLDivElement | null>,
  { at, request }: GridFocus,
  scrollTo: (row: number) => void,
): void {
  const hasFocus = useRef(false);
  const done = useRef(0);
  const { row, column } = at;
  useLayoutEffect(() => {
    const isLost = hasFocus.current && document.activeElement === document.body;
    if (done.current === request && !isLost) return;
    done.current = request;
    if (row >= 0) scrollTo(row);
    focusCell(grid.current, { row, column });
  });
  useEffect(() => {
    const element = grid.current;
    if (!element) return undefined;
    const enter = () => void (hasFocus.current = true);
    // When a focused row is removed, there is no other element that gets the focus.
    const leave = ({ relatedTarget, target }: FocusEvent) => {
      if (relatedTarget !== null || (target instanceof Element && target.isConnected))
        hasFocus.current = false;
    };
    element.addEventListener('focusin', enter);
    element.addEventListener('focusout', leave);
    return () => {
      element.removeEventListener('focusin', enter);
      element.removeEventListener('focusout', leave);
    };
  }, [grid]);
}
