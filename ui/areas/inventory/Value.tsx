import type { ReactNode } from 'react';
import { Exact } from '../../parts/Exact.tsx';
import { labelOfField } from '../../parts/format.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import type { ResourceField } from './inventoryQueries.ts';
import { referenceOf } from './resources.ts';
import classes from './Inventory.module.css';

type Props = { field: ResourceField; value: unknown; names: Names | undefined };

const isText = (value: unknown): value is string => typeof value === 'string';

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

/** A value in one line of a list: names instead of ids, and nothing for what is not set. */
export function CellValue({ field, value, names }: Props): ReactNode {
  if (value === null || value === undefined || value === '') return null;
  if (field.name === 'status' && isText(value)) return <StatusBadge status={value} />;
  const kind = referenceOf(field);
  if (kind !== undefined)
    return listOf(value)
      .filter(isText)
      .map((id, index) => (
        <span key={id}>
          {index > 0 && ', '}
          <RecordLink id={id} names={names} kind={kind} />
        </span>
      ));
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (field.name === 'color' && isText(value)) return <Colour value={value} />;
  if (field.choices && isText(value)) return labelOfField(value);
  return <Exact text={textOf(field, value, names)} />;
}

/** A colour as `aabbcc`, shown and written. */
function Colour({ value }: { value: string }) {
  return (
    <span className={classes.colour}>
      <svg viewBox="0 0 10 10" width="12" height="12" aria-hidden="true">
        <rect width="10" height="10" rx="2" fill={`#${value.replace(/^#/, '')}`} />
      </svg>
      <Exact text={value} />
    </span>
  );
}

/** A value without names as text: lists with commas, and what has fields as JSON. */
export function plainText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(plainText).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A value as text, for copies. */
export function textOf(field: ResourceField, value: unknown, names: Names | undefined): string {
  const kind = referenceOf(field);
  if (kind === undefined || value === null || value === undefined) return plainText(value);
  return listOf(value)
    .filter(isText)
    .map((id) => labelOf(names, id, kind) ?? id)
    .join(', ');
}
