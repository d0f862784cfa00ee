/** What decides where a column is shown and how wide it is. */
export type ColumnSpace = {
  id: string;
  /** The smallest width in pixels. Default: 120. */
  width?: number | undefined;
  /** Its part of the free space. Default: 1; 0 keeps the width. */
  grow?: number | undefined;
  /** Not shown while the grid is narrower than this, in pixels. */
  hideBelow?: number | undefined;
  /** Shown only if it is chosen. */
  isOptional?: boolean | undefined;
};

export const DEFAULT_WIDTH = 120;

/** The widths that columns have by themselves. */
const NOT_SET = {};
/** The number of columns that are shown, whatever the width is. */
const FEWEST = 2;

/** Which column is left out first: the one that needs the widest grid; of those that need none, the last. */
const isLessNeeded = (one: ColumnSpace, other: ColumnSpace): boolean =>
  (one.hideBelow ?? 0) >= (other.hideBelow ?? 0);

function withoutLeastNeeded<Column extends ColumnSpace>(columns: readonly Column[]): Column[] {
  const [, ...others] = columns;
  const least = others.reduce((found, each) => (isLessNeeded(each, found) ? each : found));
  return columns.filter((column) => column !== least);
}

/**
 * The columns that a grid shows in `width` pixels. A choice of columns is kept in its order, whatever
 * the width is; without one the columns that fit are shown.
 */
export function shownColumns<Column extends ColumnSpace>(
  columns: readonly Column[],
  chosen: readonly string[] | undefined,
  width: number,
): Column[] {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const wanted = (chosen ?? []).flatMap((id) => byId.get(id) ?? []);
  if (wanted.length > 0) return wanted;
  let shown = columns.filter(
    ({ isOptional, hideBelow }) =>
      isOptional !== true && (hideBelow === undefined || width >= hideBelow),
  );
  while (shown.length > FEWEST && leastWidth(shown, NOT_SET) > width)
    shown = withoutLeastNeeded(shown);
  return shown;
}

/** The tracks of a CSS grid for columns; `sized` has the widths that the user has set. */
export const trackList = (
  columns: readonly ColumnSpace[],
  sized: Readonly<Record<string, number>>,
): string =>
  columns
    .map(({ id, width = DEFAULT_WIDTH, grow = 1 }) => {
      const set = sized[id];
      if (set !== undefined) return `${Math.round(set)}px`;
      return grow === 0 ? `${width}px` : `minmax(${width}px, ${grow}fr)`;
    })
    .join(' ');

/** The width below which the grid scrolls sideways. */
export const leastWidth = (
  columns: readonly ColumnSpace[],
  sized: Readonly<Record<string, number>>,
): number => columns.reduce((sum, { id, width = DEFAULT_WIDTH }) => sum + (sized[id] ?? width), 0);
