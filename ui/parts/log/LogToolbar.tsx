import { NativeSelect, TextInput, UnstyledButton } from '@mantine/core';
import type { KeyboardEvent } from 'react';
import { formatCount, formatNumberOf } from '../format.ts';
import { Icon } from '../icons.tsx';
import { IconButton } from '../PermissionButton.tsx';
import type { LogState } from './logReader.ts';
import type { LogFilter } from './rows.ts';
import type { LogSearch } from './useLogSearch.ts';
import classes from './LogView.module.css';

const LEVELS = ['error', 'warn', 'info', 'debug'];

type Props = {
  search: LogSearch;
  /** Lines are missing in memory, in which there may be matches. */
  isPartial: boolean;
  filter: LogFilter;
  onFilter: (filter: LogFilter) => void;
  levels: ReadonlyMap<string, number>;
  attempts: readonly number[];
  state: LogState;
  lines: number;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  onCopy: () => void;
  onDownload: () => void;
  /** What copying or downloading says, such as how much is read. */
  note: string | undefined;
};

function Search({ search, isPartial }: Pick<Props, 'search' | 'isPartial'>) {
  const { text, onText, count, position, isMore, step } = search;
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape' && text !== '') {
      event.stopPropagation();
      onText('');
    }
  };
  const total = `${formatCount(count)}${isMore ? '+' : ''}`;
  const found = position < 0 ? `${total} found` : `${formatCount(position + 1)} of ${total}`;
  const words = count === 0 ? 'No matches' : found;
  return (
    <div className={classes.search} role="search" aria-label="Log">
      <TextInput
        aria-label="Search the log"
        placeholder="Search the log"
        leftSection={<Icon name="search" size={14} />}
        value={text}
        onChange={(event) => onText(event.currentTarget.value)}
        onKeyDown={press}
        spellCheck={false}
      />
      {text !== '' && (
        <>
          <span className={classes.matches} role="status">
            {words}
            {isPartial && ' so far'}
          </span>
          <IconButton icon="chevronUp" label="Previous match" onClick={() => step(-1)} />
          <IconButton icon="chevronDown" label="Next match" onClick={() => step(1)} />
        </>
      )}
    </div>
  );
}

function Levels({ filter, onFilter, levels }: Pick<Props, 'filter' | 'onFilter' | 'levels'>) {
  const known = LEVELS.filter((level) => levels.has(level) || filter.levels.has(level));
  const all = [...known, ...[...levels.keys()].filter((level) => !LEVELS.includes(level))];
  if (all.length < 2 && filter.levels.size === 0) return null;
  const toggle = (level: string) => {
    const next = new Set(filter.levels);
    if (!next.delete(level)) next.add(level);
    onFilter({ ...filter, levels: next });
  };
  return (
    <div className={classes.levels} role="group" aria-label="Levels">
      {all.map((level) => (
        <UnstyledButton
          key={level}
          className={classes.levelButton}
          aria-pressed={filter.levels.has(level)}
          data-active={filter.levels.has(level) || undefined}
          data-level={level}
          onClick={() => toggle(level)}
        >
          {level} <span className={classes.levelCount}>{formatCount(levels.get(level) ?? 0)}</span>
        </UnstyledButton>
      ))}
    </div>
  );
}

const STATE_TEXTS: Readonly<Record<LogState, string>> = {
  reading: 'Reading …',
  live: 'Live',
  waiting: 'Reconnecting …',
  ended: '',
  failed: 'Stopped',
};

/** What can be done with a log: search, choose levels and attempts, wrap, copy, download. */
export function LogToolbar(props: Props) {
  const { search, filter, onFilter, levels, attempts, state, lines, wrap, onWrap, note } = props;
  return (
    <div className={classes.toolbar}>
      <Search search={search} isPartial={props.isPartial} />
      <Levels filter={filter} onFilter={onFilter} levels={levels} />
      {attempts.length > 1 && (
        <NativeSelect
          aria-label="Attempt"
          size="xs"
          value={filter.attempt === null ? '' : String(filter.attempt)}
          onChange={({ currentTarget: { value } }) =>
            onFilter({ ...filter, attempt: value === '' ? null : Number(value) })
          }
          data={[
            { value: '', label: 'All attempts' },
            ...attempts.map((attempt) => ({ value: String(attempt), label: `Attempt ${attempt}` })),
          ]}
        />
      )}
      <div className={classes.end}>
        <span className={classes.state} data-state={state} role="status">
          {STATE_TEXTS[state]}
        </span>
        <span className={classes.state}>{note ?? formatNumberOf(lines, 'line')}</span>
        <IconButton
          icon="wrap"
          label="Wrap long lines"
          pressed={wrap}
          onClick={() => onWrap(!wrap)}
        />
        <IconButton icon="copy" label="Copy the lines shown" onClick={props.onCopy} />
        <IconButton icon="download" label="Download the log" onClick={props.onDownload} />
      </div>
    </div>
  );
}
