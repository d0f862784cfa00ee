import { useState } from 'react';
import { CopyButton } from './CopyButton.tsx';
import { formatCount } from './format.ts';
import { Icon } from './icons.tsx';
import classes from './Json.module.css';

type Props = {
  value: unknown;
  /** Names what is shown, for screen readers. */
  label: string;
  /** Without the button that copies all of it. */
  plain?: boolean;
};

/** Levels that are open at first, for a small and for a large value. */
const OPEN_LEVELS = { small: 6, large: 1 };
const SMALL_CHARS = 4_000;
const MAX_CHILDREN = 100;
const MAX_TEXT = 400;

const isContainer = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

function Text({ value }: { value: string }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && value.length > MAX_TEXT;
  return (
    <span className={classes.text}>
      {JSON.stringify(isCut ? value.slice(0, MAX_TEXT) : value)}
      {isCut && (
        <button type="button" className={classes.more} onClick={() => setWhole(true)}>
          {formatCount(value.length - MAX_TEXT)} more characters
        </button>
      )}
    </span>
  );
}

function Scalar({ value }: { value: unknown }) {
  if (typeof value === 'string') return <Text value={value} />;
  if (value === null || value === undefined) return <span className={classes.none}>null</span>;
  return <span className={classes.scalar}>{JSON.stringify(value)}</span>;
}

type NodeProps = { value: unknown; name?: string | undefined; openLevels: number; isLast: boolean };

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className={classes.name}>{JSON.stringify(name)}: </span>;
}

function Container({ value, name, openLevels, isLast }: NodeProps & { value: object }) {
  const [isOpen, setOpen] = useState(openLevels > 0);
  const [limit, setLimit] = useState(MAX_CHILDREN);
  const isList = Array.isArray(value);
  const entries: [string, unknown][] = Object.entries(value);
  const [start, end] = isList ? '[]' : '{}';
  const comma = isLast ? '' : ',';
  const noun = isList ? 'items' : 'fields';
  return (
    <div className={classes.node}>
      <button
        type="button"
        className={classes.toggle}
        aria-expanded={isOpen}
        aria-label={`${name ?? (isList ? 'List' : 'Object')}, ${entries.length} ${noun}`}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={isOpen ? 'chevronDown' : 'chevronRight'} size={12} />
      </button>
      <Name name={name} />
      {start}
      {!isOpen && (
        <span className={classes.none}>
          {' '}
          {formatCount(entries.length)} {noun}{' '}
        </span>
      )}
      {isOpen && (
        <div className={classes.children}>
          {entries.slice(0, limit).map(([key, child], index) => (
            <Node
              key={key}
              name={isList ? undefined : key}
              value={child}
              openLevels={openLevels - 1}
              isLast={index === entries.length - 1}
            />
          ))}
          {entries.length > limit && (
            <button
              type="button"
              className={classes.more}
              onClick={() => setLimit(limit + 10 * MAX_CHILDREN)}
            >
              {formatCount(entries.length - limit)} more
            </button>
          )}
        </div>
      )}
      {end}
      {comma}
    </div>
  );
}

function Node(props: NodeProps) {
  const { value, name, isLast } = props;
  if (isContainer(value) && Object.keys(value).length > 0)
    return <Container {...props} value={value} />;
  return (
    <div className={classes.node}>
      <Name name={name} />
      {isContainer(value) ? Array.isArray(value) ? '[]' : '{}' : <Scalar value={value} />}
      {isLast ? '' : ','}
    </div>
  );
}

/** A JSON value that can be folded and copied. It is text: nothing in it is run or linked. */
export function Json({ value, label, plain = false }: Props) {
  const text = JSON.stringify(value, null, 2) ?? 'null';
  const openLevels = text.length > SMALL_CHARS ? OPEN_LEVELS.large : OPEN_LEVELS.small;
  return (
    <div className={classes.json} role="group" aria-label={label}>
      {!plain && (
        <span className={classes.copy}>
          <CopyButton value={text} label={`Copy ${label.toLowerCase()}`} />
        </span>
      )}
      <div className={classes.content}>
        <Node value={value} openLevels={openLevels} isLast />
      </div>
    </div>
  );
}
