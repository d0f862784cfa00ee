/** A row as it is drawn: with its depth, and its position among the rows of the same parent. */
export type TreeRow<Row> = {
  row: Row;
  key: string;
  level: number;
  position: number;
  siblings: number;
  parent: number;
  isExpandable: boolean;
  isExpanded: boolean;
};

export type TreeShape<Row> = {
  rowKey: (row: Row) => string;
  /** Children that are loaded; undefined while they are not. */
  childrenOf: (row: Row) => readonly Row[] | undefined;
  hasChildren: (row: Row) => boolean;
  expanded: ReadonlySet<string>;
};

/** A tree as the list of its visible rows: children follow an expanded row. */
export function flattenTree<Row>(roots: readonly Row[], shape: TreeShape<Row>): TreeRow<Row>[] {
  const { rowKey, childrenOf, hasChildren, expanded } = shape;
  const flat: TreeRow<Row>[] = [];
  const add = (rows: readonly Row[], level: number, parent: number): void => {
    rows.forEach((row, index) => {
      const key = rowKey(row);
      const isExpandable = hasChildren(row);
      const isExpanded = isExpandable && expanded.has(key);
      const own = flat.length;
      flat.push({
        row,
        key,
        level,
        parent,
        position: index + 1,
        siblings: rows.length,
        isExpandable,
        isExpanded,
      });
      if (isExpanded) add(childrenOf(row) ?? [], level + 1, own);
    });
  };
  add(roots, 1, -1);
  return flat;
}
