import type { ReactNode } from 'react';
import { AppLink } from './AppLink.tsx';
import { Exact } from './Exact.tsx';
import { EVERY_TENANT, labelOf, type Names } from './names.ts';
import { hasNoPage, recordPath, shortId } from './recordIds.ts';
import classes from './RecordLink.module.css';

type Props = {
  id: string | null | undefined;
  /** What is shown; without it the label in `names`, or the end of the id. */
  label?: ReactNode;
  names?: Names | undefined;
  /** The kind of the record, as `included.labels` calls it. */
  kind?: string | undefined;
};

/** A link to the page of a record, or its name if it has none. */
export function RecordLink({ id, label, names, kind }: Props) {
  if (id === null || id === undefined || id === '') return <span>–</span>;
  const text = label ?? labelOf(names, id, kind);
  const shown =
    typeof text === 'string' ? (
      <Exact text={text} />
    ) : (
      (text ?? <span className={classes.id}>{shortId(id)}</span>)
    );
  if (hasNoPage(id) || id === EVERY_TENANT) return <span title={id}>{shown}</span>;
  return (
    <AppLink to={recordPath(id, kind)} className={classes.link} title={id}>
      {shown}
    </AppLink>
  );
}
