import { useMemo, useState } from 'react';
import { CopyButton } from './CopyButton.tsx';
import { exactText } from './exact.ts';
import { Exact } from './Exact.tsx';
import { formatCount } from './format.ts';
import { Icon } from './icons.tsx';
import classes from './Json.module.css';
import { blocksOf } from './wholeJson.ts';

type Props = {
  value: unknown;
  /** Names what is shown, for screen readers. */
  label: string;
  /** Without the button that copies all of it. */
  plain?: boolean;
  /** With nothing folded, cut or left out, however large: for what people decide on. */
  whole?: boolean;
};

/** Levels that are open at first, for a small and for a large value. */
const OPEN_LEVELS = { small: 6, large: 1 };
const SMALL_CHARS = 4_000;
const MAX_CHILDREN = 100;
const MAX_TEXT = 400;

const isContainer = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

function Text({ value, whole }: { value: string; whole: boolean }) {
  const [isWhole, setWhole] = useState(whole);
  const isCut = !isWhole && value.length > MAX_TEXT;
  // Without the quote at the end: the text goes on.
  const text = isCut
    ? `${JSON.stringify(value.slice(0, MAX_TEXT)).slice(0, -1)}… `
    : JSON.stringify(value);
  return (
    <span className={classes.text}>
      <Exact text={text} />
      {isCut && (
        <button type="button" className={classes.more} onClick={() => setWhole(true)}>
          {formatCount(value.length - MAX_TEXT)} more characters
        </button>
      )}
    </span>
  );
}

function Scalar({ value, whole }: { value: unknown; whole: boolean }) {
  if (typeof value === 'string') return <Text value={value} whole={whole} />;
  if (value === null || value === undefined) return <span className={classes.none}>null</span>;
  return <span className={classes.scalar}>{JSON.stringify(value)}</span>;
}

type NodeProps = {
  value: unknown;
  name?: string | undefined;
  openLevels: number;
  isLast: boolean;
  whole: boolean;
};

function Name({ name }: { name: string | undefined }) {
  if (name === undefined) return null;
  return (
    <span className={classes.name}>
      <Exact text={JSON.stringify(name)} />:{' '}
    </span>
  );
}

type ToggleProps = { isOpen: boolean; label: string; onToggle: () => void };

function Toggle({ isOpen, label, onToggle }: ToggleProps) {
  return (
    <button
      type="button"
      className={classes.toggle}
      aria-expanded={isOpen}
      aria-label={label}
      onClick={onToggle}
    >
      <Icon name={isOpen ? 'chevronDown' : 'chevronRight'} size={12} />
    </button>
  );
}

function Container({ value, name, openLevels, isLast, whole }: NodeProps & { value: object }) {
  const [isOpen, setOpen] = useState(whole || openLevels > 0);
  const [limit, setLimit] = useState(whole ? Infinity : MAX_CHILDREN);
  const isList = Array.isArray(value);
  const entries: [string, unknown][] = Object.entries(value);
  const [start, end] = isList ? '[]' : '{}';
  const comma = isLast ? '' : ',';
  const noun = isList ? 'items' : 'fields';
  return (
    <div className={classes.node}>
      {!whole && (
        <Toggle
          isOpen={isOpen}
          label={`${exactText(name ?? (isList ? 'List' : 'Object'))}, ${entries.length} ${noun}`}
          onToggle={() => setOpen(!isOpen)}
        />
      )}
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
              whole={whole}
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
  const { value, name, isLast, whole } = props;
  if (isContainer(value) && Object.keys(value).length > 0)
    return <Container {...props} value={value} />;
  return (
    <div className={classes.node}>
      <Name name={name} />
      {isContainer(value) ? (
        Array.isArray(value) ? (
          '[]'
        ) : (
          '{}'
        )
      ) : (
        <Scalar value={value} whole={whole} />
      )}
      {isLast ? '' : ','}
    </div>
  );
}

type TreeProps = { value: unknown; openLevels: number; whole: boolean };

function Content({ value, openLevels, whole }: TreeProps) {
  const blocks = useMemo(() => (whole ? blocksOf(value) : undefined), [value, whole]);
  if (!blocks) return <Node value={value} openLevels={openLevels} isLast whole={whole} />;
  return blocks.map((block, index) => (
    // The same value has the same blocks.
    <pre key={index} className={classes.block}>
      <Exact text={block} />
    </pre>
  ));
}

/** A JSON value that can be folded and copied. It is text: nothing in it is run or linked. */
export function Json({ value, label, plain = false, whole = false }: Props) {
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
        <Content value={value} openLevels={openLevels} whole={whole} />
      </div>
    </div>
  );
}
