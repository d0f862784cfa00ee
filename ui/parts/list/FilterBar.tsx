import { Popover, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { serverNow } from '../clock.ts';
import { formatCount, formatTime } from '../format.ts';
import { Icon } from '../icons.tsx';
import { labelOf, type Names } from '../names.ts';
import { usePreferences } from '../preferences.tsx';
import { shortId } from '../recordIds.ts';
import {
  ChoiceEditor,
  choiceLabel,
  optionsOf,
  ReferenceEditor,
  TextEditor,
  TimeEditor,
} from './FilterEditors.tsx';
import {
  activeFilters,
  joinValues,
  parseTimeRange,
  splitValues,
  TIME_PRESETS,
  withoutFilters,
  type Filter,
  type Found,
  type ListSearch,
} from './search.ts';
import type { Facet } from './useList.ts';
import classes from './Filters.module.css';
import { ownValue } from '../ownValue.ts';

type Props = {
  filters: readonly Filter[];
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
  facets: Readonly<Record<string, Facet | null | undefined>>;
  names: Names;
  /** Asks for the counts of these fields. */
  onFacets: (fields: readonly string[]) => void;
};

type OneProps = Props & { filter: Filter; onFound: (found: readonly Found[]) => void };

const isInline = (filter: Filter): boolean => filter.kind === 'choice' && filter.inline === true;

function Editor({ filter, ...props }: OneProps & { onClose: () => void }) {
  const { search, onSearch, onClose, names, facets, onFound } = props;
  const value = search[filter.id];
  const onChange = (next: string | undefined) => onSearch({ ...search, [filter.id]: next });
  const own = { value, onChange, onClose };
  switch (filter.kind) {
    case 'text':
      return <TextEditor filter={filter} {...own} />;
    case 'choice':
      return <ChoiceEditor filter={filter} {...own} facet={facets[filter.id]} names={names} />;
    case 'reference':
      return <ReferenceEditor filter={filter} {...own} names={names} onFound={onFound} />;
    case 'time':
      return <TimeEditor filter={filter} {...own} />;
    case 'flag':
      return null;
  }
}

function FilterMenu(props: OneProps) {
  const { filter, search, onSearch, onFacets } = props;
  const [isOpen, setOpen] = useState(false);
  const isActive = search[filter.id] !== undefined;
  if (filter.kind === 'flag')
    return (
      <UnstyledButton
        className={classes.button}
        aria-pressed={isActive}
        data-active={isActive || undefined}
        onClick={() => onSearch({ ...search, [filter.id]: isActive ? undefined : 'on' })}
      >
        {isActive && <Icon name="check" size={12} />}
        {filter.label}
      </UnstyledButton>
    );
  const change = (next: boolean) => {
    if (next && filter.kind === 'choice' && filter.facet === true) onFacets([filter.id]);
    setOpen(next);
  };
  return (
    <Popover
      opened={isOpen}
      onChange={change}
      position="bottom-start"
      trapFocus
      returnFocus
      shadow="md"
      offset={4}
    >
      <Popover.Target>
        <UnstyledButton
          className={classes.button}
          data-active={isActive || undefined}
          onClick={() => change(!isOpen)}
        >
          {filter.label}
          <Icon name="chevronDown" size={12} />
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown p={8} aria-label={`Filter by ${filter.label.toLowerCase()}`}>
        <Editor {...props} onClose={() => setOpen(false)} />
      </Popover.Dropdown>
    </Popover>
  );
}

/** The states of a list beside each other, each with its count. */
function InlineChoices({ filter, search, onSearch, facets, names }: OneProps) {
  if (filter.kind !== 'choice') return null;
  const chosen = splitValues(search[filter.id]);
  const choose = (values: readonly string[]) =>
    onSearch({ ...search, [filter.id]: values.length === 0 ? undefined : joinValues(values) });
  return (
    <div className={classes.states} role="group" aria-label={filter.label}>
      <UnstyledButton
        className={classes.state}
        aria-pressed={chosen.length === 0}
        data-active={chosen.length === 0 || undefined}
        onClick={() => choose([])}
      >
        All
      </UnstyledButton>
      {optionsOf(filter, facets[filter.id], chosen, names).map(({ value, label, count }) => {
        const isChosen = chosen.includes(value);
        return (
          <UnstyledButton
            key={value}
            className={classes.state}
            aria-pressed={isChosen}
            data-active={isChosen || undefined}
            onClick={() =>
              choose(isChosen ? chosen.filter((each) => each !== value) : [...chosen, value])
            }
          >
            {label}
            {/* Its width is there before the list is read: rows must not move when a state gets its count. */}
            {filter.facet === true && (
              <span className={classes.count}>{count !== undefined && formatCount(count)}</span>
            )}
          </UnstyledButton>
        );
      })}
    </div>
  );
}

/** What an active filter is set to, in words. */
function describe(filter: Filter, text: string, names: Names, utc: boolean): string {
  if (filter.kind === 'text') return text;
  if (filter.kind === 'flag') return '';
  if (filter.kind === 'time') {
    const preset = ownValue(TIME_PRESETS, text);
    if (preset) return preset.label.toLowerCase();
    const now = new Date(serverNow());
    const { from, to } = parseTimeRange(text, now) ?? {};
    const start = from ? `from ${formatTime(from, now, { utc })}` : '';
    return `${start} ${to ? `until ${formatTime(to, now, { utc })}` : ''}`.trim();
  }
  return splitValues(text)
    .map((value) => {
      if (filter.kind === 'reference') return labelOf(names, value) ?? shortId(value);
      const choice = filter.choices?.find((each) => each.value === value);
      return choice?.label ?? labelOf(names, value) ?? choiceLabel(filter, value);
    })
    .join(', ');
}

function Chips({ filters, search, onSearch, names }: Props) {
  const { utc } = usePreferences();
  const active = activeFilters(filters, search).filter((filter) => !isInline(filter));
  if (active.length === 0) return null;
  return (
    <ul className={classes.chips} aria-label="Active filters">
      {active.map((filter) => {
        const words = describe(filter, search[filter.id] ?? '', names, utc);
        return (
          <li key={filter.id} className={classes.chip}>
            <span className={classes.chipText}>
              {filter.label}
              {words !== '' && (
                <>
                  : <strong>{words}</strong>
                </>
              )}
            </span>
            <UnstyledButton
              className={classes.remove}
              aria-label={`Remove the filter ${filter.label}`}
              onClick={() => onSearch({ ...search, [filter.id]: undefined })}
            >
              <Icon name="x" size={12} />
            </UnstyledButton>
          </li>
        );
      })}
      <li>
        <UnstyledButton
          className={classes.clear}
          onClick={() => onSearch(withoutFilters(filters, search))}
        >
          Clear filters
        </UnstyledButton>
      </li>
    </ul>
  );
}

/** The filters of a list: states with counts, a menu for each other filter, and what is active. */
export function FilterBar(props: Props) {
  const { filters, names } = props;
  const [found, setFound] = useState<Readonly<Record<string, string>>>({});
  const known: Names = { ...names, labels: { ...names.labels, found } };
  const onFound = (records: readonly Found[]) =>
    setFound((old) => ({
      ...old,
      ...Object.fromEntries(records.map(({ id, label }) => [id, label])),
    }));
  const shared = { ...props, names: known, onFound };
  return (
    <div className={classes.bar} role="search" aria-label="Filters">
      <div className={classes.row}>
        {filters.filter(isInline).map((filter) => (
          <InlineChoices key={filter.id} {...shared} filter={filter} />
        ))}
        {filters
          .filter((filter) => !isInline(filter))
          .map((filter) => (
            <FilterMenu key={filter.id} {...shared} filter={filter} />
          ))}
      </div>
      <Chips {...shared} />
    </div>
  );
}
