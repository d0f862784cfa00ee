import { UnstyledButton, VisuallyHidden } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { Actor } from '../Actor.tsx';
import { exactText } from '../exact.ts';
import { Exact } from '../Exact.tsx';
import { formatNumberOf, labelOfField } from '../format.ts';
import { labelOf, type Names } from '../names.ts';
import { RecordLink } from '../RecordLink.tsx';
import { isRecordId } from '../recordIds.ts';
import { useChoiceFields } from '../records/resources.ts';
import { Time } from '../Time.tsx';
import { changedPart, changeOf, sidesOf, stableJson, type Change } from './change.ts';
import { foldEqual, type DiffPart, type LineChange } from './lines.ts';
import classes from './FieldDiff.module.css';

/** A field before and after a change. */
export type DiffRow = {
  field: string;
  /** Default: the name of the field as words. */
  label?: string | undefined;
  before: unknown;
  after: unknown;
  /** The kind of the records that its value refers to, or `people`. */
  kind?: string | undefined;
};

/** A row as it is shown. `isChoice`: its value is one of the choices of the API, which are shown as words. */
type ShownRow = DiffRow & { isChoice: boolean };

type Props = {
  rows: readonly DiffRow[];
  /** The labels of records and people that values refer to: `included` of the response. */
  names?: Names | undefined;
  /** The resource of the record, if it is of the inventory: choices of its fields are shown as words. */
  resource?: string | undefined;
  /** A created record has only new values, a deleted one only old ones. Default: update. */
  action?: 'create' | 'update' | 'delete' | undefined;
  /** Names the table for screen readers. */
  label?: string | undefined;
  /** Shows no header: for one of many tables below each other. */
  quiet?: boolean | undefined;
};

const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

const isReference = (row: DiffRow, value: string): boolean =>
  row.kind !== undefined || isRecordId(value) || /Ids?$/.test(row.field);

type ValueProps = { value: unknown; row: ShownRow; names: Names | undefined; mark?: ReactNode };

function Code({ value }: { value: unknown }) {
  return (
    <code className={classes.code}>
      <Exact text={stableJson(value)} />
    </code>
  );
}

/** A value as people read it: names for ids, yes and no, local times. */
function Value({ value, row, names, mark }: ValueProps) {
  if (value === null || value === undefined || value === '')
    return <span className={classes.none}>not set</span>;
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (typeof value === 'number') return <>{String(value)}</>;
  if (typeof value !== 'string') return <Code value={value} />;
  if (row.kind === 'people') return <Actor id={value} names={names} />;
  if (isReference(row, value)) {
    const label = labelOf(names, value, row.kind);
    if (isRecordId(value)) return <RecordLink id={value} label={label} names={names} />;
    return (
      <span title={exactText(value)}>
        <Exact text={label ?? value} />
      </span>
    );
  }
  if (ISO_TIME.test(value)) return <Time value={value} format="full" />;
  if (row.isChoice) return <>{labelOfField(value)}</>;
  return <span className={classes.text}>{mark ?? <Exact text={value} />}</span>;
}

/** The part of a text that differs from the other one is marked. */
function marked(value: unknown, other: unknown): ReactNode {
  if (typeof value !== 'string' || typeof other !== 'string') return undefined;
  const part = changedPart(value, other);
  if (!part) return undefined;
  const end = value.length - part.end;
  return (
    <>
      <Exact text={value.slice(0, part.start)} />
      <mark className={classes.mark}>
        <Exact text={value.slice(part.start, end)} />
      </mark>
      <Exact text={value.slice(end)} />
    </>
  );
}

const SIGNS = { same: ' ', removed: '−', added: '+' } as const;
const WORDS = { same: '', removed: 'Removed: ', added: 'Added: ' } as const;

function Line({ kind, text }: LineChange) {
  return (
    <div className={classes.line} data-kind={kind}>
      <span className={classes.sign} aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <VisuallyHidden>{WORDS[kind]}</VisuallyHidden>
      <span className={classes.lineText}>
        <Exact text={text} />
      </span>
    </div>
  );
}

function Lines({ lines }: { lines: readonly LineChange[] }) {
  const [isWhole, setWhole] = useState(false);
  const parts: DiffPart[] = isWhole ? [{ kind: 'lines', lines: [...lines] }] : foldEqual(lines);
  return (
    <div className={classes.lines}>
      {parts.map((part, index) =>
        part.kind === 'folded' ? (
          // Parts of the same lines stay at the same positions.
          <UnstyledButton key={index} className={classes.fold} onClick={() => setWhole(true)}>
            {formatNumberOf(part.count, 'equal line')}
          </UnstyledButton>
        ) : (
          <div key={index}>
            {part.lines.map((line, at) => (
              <Line key={at} {...line} />
            ))}
          </div>
        ),
      )}
    </div>
  );
}

type Members = Extract<Change, { kind: 'list' }>;

function Members({
  change,
  row,
  names,
}: {
  change: Members;
  row: ShownRow;
  names: Names | undefined;
}) {
  const member = (kind: 'removed' | 'added') => (value: unknown, index: number) => (
    <li key={`${kind} ${index}`} className={classes.member} data-kind={kind}>
      <span className={classes.sign} aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <VisuallyHidden>{WORDS[kind]}</VisuallyHidden>
      <Value value={value} row={row} names={names} />
    </li>
  );
  return (
    <ul className={classes.members}>
      {change.removed.map(member('removed'))}
      {change.added.map(member('added'))}
      {change.kept > 0 && <li className={classes.none}>{change.kept} unchanged</li>}
    </ul>
  );
}

type CellsProps = { row: ShownRow; change: Change; names: Names | undefined };

/** The values of a changed field: beside each other, or one difference for lists and long texts. */
function UpdateCells({ row, change, names }: CellsProps) {
  if (change.kind === 'list' || change.kind === 'lines')
    return (
      <td colSpan={2} className={classes.value}>
        {change.kind === 'list' ? (
          <Members change={change} row={row} names={names} />
        ) : (
          <Lines lines={change.lines} />
        )}
      </td>
    );
  const { before, after } = row;
  return (
    <>
      <td className={classes.value} data-side="before" data-label="Before">
        <Value value={before} row={row} names={names} mark={marked(before, after)} />
      </td>
      <td className={classes.value} data-side="after" data-label="After">
        <Value value={after} row={row} names={names} mark={marked(after, before)} />
      </td>
    </>
  );
}

type FieldValueProps = { field: string; value: unknown; names?: Names | undefined };

/** The value of a field as people read it: names for ids, yes and no, local times. */
export function FieldValue({ field, value, names }: FieldValueProps) {
  return (
    <Whole
      value={value}
      row={{ field, before: null, after: value, isChoice: false }}
      names={names}
    />
  );
}

function Whole({ value, row, names }: Omit<ValueProps, 'mark'>) {
  const members: readonly unknown[] = Array.isArray(value) ? value : [];
  if (members.length > 0)
    return (
      <ul className={classes.members}>
        {members.map((each, index) => (
          <li key={index}>
            <Value value={each} row={row} names={names} />
          </li>
        ))}
      </ul>
    );
  return <Value value={value} row={row} names={names} />;
}

type FieldRowProps = CellsProps & { action: 'create' | 'update' | 'delete' };

function FieldRow({ row, change, names, action }: FieldRowProps) {
  return (
    <tr>
      <th scope="row" className={classes.field} title={row.field}>
        <Exact text={row.label ?? labelOfField(row.field)} />
      </th>
      {action === 'update' ? (
        <UpdateCells row={row} change={change} names={names} />
      ) : (
        <td className={classes.value} data-side={action === 'create' ? 'after' : 'before'}>
          <Whole value={action === 'create' ? row.after : row.before} row={row} names={names} />
        </td>
      )}
    </tr>
  );
}

const isSet = (value: unknown): boolean =>
  value !== null &&
  value !== undefined &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0);

/**
 * What changes in a record, field by field. Fields that stay as they are, and those that a new or deleted
 * record does not have, are hidden until they are asked for.
 */
export function FieldDiff(props: Props) {
  const { rows, names, resource, label = 'Changes', quiet = false } = props;
  const { action, headers } = sidesOf(props.action);
  const [isWhole, setWhole] = useState(false);
  const choices = useChoiceFields(resource);
  const all = rows.map((row) => ({
    row: { ...row, isChoice: choices.has(row.field) },
    change: changeOf(row.before, row.after),
  }));
  const matters = ({ row, change }: (typeof all)[number]) =>
    action === 'update'
      ? change.kind !== 'none'
      : isSet(action === 'create' ? row.after : row.before);
  const shown = isWhole ? all : all.filter(matters);
  const hidden = all.length - shown.length;
  return (
    <div className={classes.diff}>
      <table className={classes.table} aria-label={label}>
        <colgroup>
          <col className={classes.fieldColumn} />
        </colgroup>
        <thead data-quiet={quiet || undefined}>
          <tr>
            <th scope="col">Field</th>
            {headers.map((header) => (
              <th key={header} scope="col">
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((each) => (
            <FieldRow key={each.row.field} {...each} names={names} action={action} />
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p className={classes.nothing}>No field changes.</p>}
      {(hidden > 0 || isWhole) && (
        <UnstyledButton className={classes.more} onClick={() => setWhole(!isWhole)}>
          {isWhole
            ? 'Show changes only'
            : formatNumberOf(
                hidden,
                action === 'update' ? 'unchanged field' : 'field without a value',
                action === 'update' ? 'unchanged fields' : 'fields without a value',
              )}
        </UnstyledButton>
      )}
    </div>
  );
}
