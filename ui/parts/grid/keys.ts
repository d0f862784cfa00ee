/** Where the focus of a grid is. Row -1 is the header. */
export type Position = { row: number; column: number };

export type GridSize = { rows: number; columns: number; page: number };

export type Key = {
  key: string;
  shift: boolean;
  control: boolean;
  alt: boolean;
};

/** What a key does: moves the focus, or asks for something at the focused row. */
export type GridAction =
  | { kind: 'move'; to: Position; extends: boolean }
  | { kind: 'open' | 'activate' | 'select' | 'selectAll' | 'clear' }
  | { kind: 'expand' | 'collapse' };

const clamp = (value: number, low: number, high: number): number =>
  Math.max(low, Math.min(value, high));

/** A position inside the grid. */
export const clampPosition = (
  { row, column }: Position,
  { rows, columns }: Pick<GridSize, 'rows' | 'columns'>,
): Position => ({
  row: clamp(row, -1, rows - 1),
  column: clamp(column, 0, Math.max(columns - 1, 0)),
});

function target({ key, control }: Key, at: Position, { rows, columns, page }: GridSize) {
  const { row, column } = at;
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return { row: row + 1, column };
    case 'ArrowUp':
      return { row: row - 1, column };
    case 'k':
      // Letters move between records; the header is reached with the arrow.
      return { row: Math.max(row - 1, 0), column };
    case 'ArrowLeft':
      return { row, column: column - 1 };
    case 'ArrowRight':
      return { row, column: column + 1 };
    case 'PageDown':
      return { row: Math.max(row, 0) + page, column };
    case 'PageUp':
      return { row: Math.max(row - page, Math.min(row, 0)), column };
    case 'Home':
      return control ? { row: 0, column: 0 } : { row, column: 0 };
    case 'End':
      return control ? { row: rows - 1, column: columns - 1 } : { row, column: columns - 1 };
    default:
      return undefined;
  }
}

/** Keys that ask for something at the focused row, without modifiers. */
const COMMANDS: Readonly<Record<string, GridAction>> = {
  Enter: { kind: 'activate' },
  e: { kind: 'open' },
  x: { kind: 'select' },
  ' ': { kind: 'select' },
  Escape: { kind: 'clear' },
};

export type Focused = { isExpandable: boolean; isExpanded: boolean; isTree: boolean };

/** In a tree, the arrows open and close a row before they move. */
function treeAction(pressed: Key, at: Position, focused: Focused): GridAction | undefined {
  if (!focused.isTree || at.column !== 0 || at.row < 0 || pressed.control) return undefined;
  if (pressed.key === 'ArrowRight' && focused.isExpandable && !focused.isExpanded)
    return { kind: 'expand' };
  if (pressed.key === 'ArrowLeft') return { kind: 'collapse' };
  return undefined;
}

/** What a key does in a grid; undefined for keys that are not the grid's. */
export function gridAction(
  pressed: Key,
  at: Position,
  size: GridSize,
  focused: Focused = { isTree: false, isExpandable: false, isExpanded: false },
): GridAction | undefined {
  const { key, shift, control, alt } = pressed;
  if (alt) return undefined;
  if (control && key.toLowerCase() === 'a') return { kind: 'selectAll' };
  const inTree = treeAction(pressed, at, focused);
  if (inTree) return inTree;
  const isCursorKey = key.length > 1;
  if (control && !isCursorKey) return undefined;
  const to = target(pressed, at, size);
  if (to) {
    const extendsRange = shift && (key === 'ArrowDown' || key === 'ArrowUp');
    return { kind: 'move', to: clampPosition(to, size), extends: extendsRange };
  }
  return control ? undefined : COMMANDS[key];
}
