import { useId, type ReactNode } from 'react';
import classes from './Section.module.css';

type Props = {
  title: string;
  /** Beside the title, for instance a count. */
  note?: ReactNode;
  /** At the right of the title. */
  actions?: ReactNode;
  children: ReactNode;
};

/** A part of a page under a heading. */
export function Section({ title, note, actions, children }: Props) {
  const id = useId();
  return (
    <section className={classes.section} aria-labelledby={id}>
      <div className={classes.head}>
        <h2 id={id} className={classes.title}>
          {title}
        </h2>
        {note !== undefined && <span className={classes.note}>{note}</span>}
        {actions !== undefined && <div className={classes.actions}>{actions}</div>}
      </div>
      {children}
    </section>
  );
}
