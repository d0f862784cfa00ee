import type { ReactNode } from 'react';
import classes from './DescriptionList.module.css';

export type Description = {
  label: string;
  /** Undefined leaves the line out; null and an empty text are shown as a dash. */
  value: ReactNode;
};

type Props = { items: readonly (Description | undefined | false)[] };

/** Names and values below each other; on wide pages in columns. */
export function DescriptionList({ items }: Props) {
  return (
    <dl className={classes.list}>
      {items.map((item) =>
        item === undefined || item === false || item.value === undefined ? null : (
          <div key={item.label} className={classes.item}>
            <dt className={classes.label}>{item.label}</dt>
            <dd className={classes.value}>{item.value === '' ? '–' : (item.value ?? '–')}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
