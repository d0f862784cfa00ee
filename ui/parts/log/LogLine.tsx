import { memo, type MouseEvent, type ReactNode } from 'react';
import { formatLogTime } from '../format.ts';
import { Exact } from '../Exact.tsx';
import { Icon } from '../icons.tsx';
import { Json } from '../Json.tsx';
import type { LogLine as Line } from './logStore.ts';
import type { LogMatch } from './rows.ts';
import classes from './LogView.module.css';

type Props = {
  line: Line;
  utc: boolean;
  matches: readonly LogMatch[] | undefined;
  /** The match that the search is at, if it is in this line. */
  current: LogMatch | undefined;
  isOpen: boolean;
  isCursor: boolean;
  onToggle: (line: number) => void;
  onSelect: (line: number, extend: boolean) => void;
};

/** The message with its matches marked. */
function marked(message: string, matches: readonly LogMatch[], current: LogMatch | undefined) {
  const parts: ReactNode[] = [];
  let at = 0;
  for (const match of matches) {
    parts.push(<Exact key={`before ${match.start}`} text={message.slice(at, match.start)} />);
    parts.push(
      <mark
        key={match.start}
        className={classes.mark}
        data-current={match === current || undefined}
      >
        <Exact text={message.slice(match.start, match.end)} />
      </mark>,
    );
    at = match.end;
  }
  return [...parts, <Exact key="end" text={message.slice(at)} />];
}

const hasData = ({ data }: Line): boolean =>
  data !== null && data !== undefined && Object.keys(data).length > 0;

function LineContent(props: Props) {
  const { line, utc, matches, current, isOpen, isCursor, onToggle, onSelect } = props;
  const at = new Date(line.time);
  const select = (event: MouseEvent) => {
    // The browser would scroll to an element of that name.
    event.preventDefault();
    onSelect(line.line, event.shiftKey);
  };
  return (
    <>
      <a
        className={classes.number}
        href={`#L${line.line}`}
        aria-label={`Line ${line.line}`}
        tabIndex={isCursor ? 0 : -1}
        data-line={line.line}
        onClick={select}
      >
        {line.line}
      </a>
      <time className={classes.time} dateTime={line.time} title={line.time}>
        {formatLogTime(at, { utc })}
      </time>
      <span className={classes.level}>{line.level}</span>
      <span className={classes.message}>
        {matches ? marked(line.message, matches, current) : <Exact text={line.message} />}
        {hasData(line) && (
          <button
            type="button"
            className={classes.data}
            aria-expanded={isOpen}
            aria-label={`Data of line ${line.line}`}
            tabIndex={isCursor ? 0 : -1}
            onClick={() => onToggle(line.line)}
          >
            <Icon name={isOpen ? 'chevronDown' : 'chevronRight'} size={12} />
            data
          </button>
        )}
      </span>
      {isOpen && hasData(line) && (
        <div className={classes.json}>
          <Json value={line.data} label="Data" />
        </div>
      )}
    </>
  );
}

/** A line of a log. Its text is only text: control characters of other systems are marks here. */
export const LogLine = memo(LineContent);
