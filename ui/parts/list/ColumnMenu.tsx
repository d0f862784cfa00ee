import { Button, Checkbox, Popover, SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { copyText } from '../clipboard.ts';
import { formatNumberOf } from '../format.ts';
import { shownColumns } from '../grid/columns.ts';
import { rowsAsTsv } from '../grid/rowsAsTsv.ts';
import type { GridColumn } from '../grid/types.ts';
import { IconButton } from '../PermissionButton.tsx';
import { joinValues, splitValues, type Density, type ListSearch } from './search.ts';
import classes from './ColumnMenu.module.css';

type Props<Row> = {
  columns: readonly GridColumn<Row>[];
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
  density: Density;
  /** What a copy has: the selected rows, or all that are loaded. */
  rows: () => readonly Row[];
};

/** The columns of a list in the order in which they are offered: the chosen ones first. */
function ordered<Row>(columns: readonly GridColumn<Row>[], chosen: readonly string[]) {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const first = chosen.flatMap((id) => byId.get(id) ?? []);
  return [...first, ...columns.filter(({ id }) => !chosen.includes(id))];
}

const moved = (ids: readonly string[], from: number, by: number): string[] => {
  const next = [...ids];
  next.splice(from + by, 0, ...next.splice(from, 1));
  return next;
};

type ColumnListProps<Row> = {
  columns: readonly GridColumn<Row>[];
  shown: readonly string[];
  choose: (ids: readonly string[]) => void;
};

function ColumnList<Row>({ columns, shown, choose }: ColumnListProps<Row>) {
  const toggle = (id: string) =>
    choose(shown.includes(id) ? shown.filter((each) => each !== id) : [...shown, id]);
  const move = (at: number, by: 1 | -1, header: string) => {
    if (at + by < 0 || at + by >= shown.length) return null;
    const [icon, side] =
      by < 0 ? (['arrowUp', 'left'] as const) : (['arrowDown', 'right'] as const);
    const label = `Move ${header} to the ${side}`;
    return <IconButton icon={icon} label={label} onClick={() => choose(moved(shown, at, by))} />;
  };
  return (
    <div className={classes.list} role="group" aria-label="Columns">
      {ordered(columns, shown).map(({ id, header }, at) => {
        const isShown = shown.includes(id);
        return (
          <div key={id} className={classes.item}>
            <Checkbox
              label={header}
              checked={isShown}
              disabled={isShown && shown.length === 1}
              onChange={() => toggle(id)}
            />
            {isShown && (
              <span className={classes.moves}>
                {move(at, -1, header)}
                {move(at, 1, header)}
              </span>
            )}
          </div>
        );
      })}
    </div>
  );
}

const DENSITIES: { value: Density; label: string }[] = [
  { value: 'compact', label: 'Compact' },
  { value: 'comfortable', label: 'Comfortable' },
];

/** Chooses and orders the columns, sets the height of rows, and copies the list as a table. */
export function ColumnMenu<Row>({ columns, search, onSearch, density, rows }: Props<Row>) {
  const [isOpen, setOpen] = useState(false);
  const [copied, setCopied] = useState<string>();
  // A choice starts with what is shown now: on a phone, not with the columns that a desk has.
  const own = shownColumns(columns, undefined, document.documentElement.clientWidth).map(
    ({ id }) => id,
  );
  const chosen = splitValues(search.columns);
  const shown = chosen.length > 0 ? chosen : own;
  const choose = (ids: readonly string[]) =>
    onSearch({ ...search, columns: ids.length === 0 ? undefined : joinValues(ids) });
  const copy = async () => {
    const all = rows();
    const isCopied = await copyText(rowsAsTsv(all, ordered(columns, shown).slice(0, shown.length)));
    setCopied(isCopied ? `Copied ${formatNumberOf(all.length, 'row')}` : 'Could not copy');
  };
  const change = (next: boolean) => {
    setCopied(undefined);
    setOpen(next);
  };
  return (
    <Popover
      opened={isOpen}
      onChange={change}
      position="bottom-end"
      trapFocus
      returnFocus
      shadow="md"
      offset={4}
    >
      <Popover.Target>
        <IconButton icon="columns" label="Columns and density" onClick={() => change(!isOpen)} />
      </Popover.Target>
      <Popover.Dropdown p={8} aria-label="Columns and density">
        <div className={classes.menu}>
          <ColumnList columns={columns} shown={shown} choose={choose} />
          <SegmentedControl
            aria-label="Height of rows"
            data={DENSITIES}
            value={density}
            onChange={(next) => onSearch({ ...search, density: next })}
          />
          <Button variant="default" onClick={() => void copy()} aria-live="polite">
            {copied ?? 'Copy as table'}
          </Button>
          {search.columns !== undefined && (
            <Button variant="subtle" onClick={() => choose([])}>
              Reset columns
            </Button>
          )}
        </div>
      </Popover.Dropdown>
    </Popover>
  );
}
