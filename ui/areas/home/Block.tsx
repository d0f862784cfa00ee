import type { ReactNode } from 'react';
import { useId } from 'react';
import { Bones } from '../../parts/Bones.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import classes from './Block.module.css';

type Props = {
  title: string;
  note?: ReactNode;
  action?: ReactNode;
  /** Reads of this block that have failed. The rest of the page does not depend on them. */
  problems?: readonly { error: unknown; hasData: boolean; retry: () => void }[];
  /** Nothing has been read yet. */
  loading?: boolean;
  children?: ReactNode;
};

/** A part of the page with a heading. What it could not read, it says itself. */
export function Block({ title, note, action, problems = [], loading, children }: Props) {
  const id = useId();
  return (
    <section className={classes.block} aria-labelledby={id}>
      <div className={classes.head}>
        <h2 id={id} className={classes.title}>
          {title}
        </h2>
        {note !== undefined && <span className={classes.note}>{note}</span>}
        {action !== undefined && <span className={classes.action}>{action}</span>}
      </div>
      {problems.map(({ error, hasData, retry }, index) => (
        // The reads of a block are always the same.
        <ProblemNote key={index} problem={error} retry={retry} hasData={hasData} />
      ))}
      {loading === true && problems.length === 0 && <Bones rows={3} />}
      {children}
    </section>
  );
}

/** Rows of a block; each has a line of its own and leads somewhere. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul className={classes.rows} aria-label={label}>
      {children}
    </ul>
  );
}

type RowProps = {
  icon?: ReactNode;
  children: ReactNode;
  /** A second line, less loud. */
  detail?: ReactNode;
  /** At the right end. */
  end?: ReactNode;
};

export function Row({ icon, children, detail, end }: RowProps) {
  return (
    <li className={classes.row}>
      {icon !== undefined && <span className={classes.icon}>{icon}</span>}
      <div className={classes.text}>
        <div className={classes.line}>{children}</div>
        {detail !== undefined && detail !== '' && (
          <div className={classes.detail}>
            {typeof detail === 'string' ? <Exact text={detail} /> : detail}
          </div>
        )}
      </div>
      {end !== undefined && <span className={classes.end}>{end}</span>}
    </li>
  );
}
