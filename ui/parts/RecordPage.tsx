import type { ReactNode } from 'react';
import { CopyButton } from './CopyButton.tsx';
import { Exact } from './Exact.tsx';
import { PageLink } from './PageLink.tsx';
import classes from './RecordPage.module.css';

type Props = {
  /** The list that the record is in. */
  parent: { label: string; to: string };
  title: ReactNode;
  badge?: ReactNode;
  /** The id, which can be copied. */
  id?: string | undefined;
  /** Below the title, in one line. */
  note?: ReactNode;
  actions?: ReactNode;
  /** At the right on wide pages, else below: facts about the record. */
  aside?: ReactNode;
  /** The content is a form: not wider than lines are read, with `aside` next to it. */
  form?: boolean | undefined;
  children: ReactNode;
};

/** The page of one record: where it belongs, its name and state, what can be done, and its content. */
export function RecordPage(props: Props) {
  const { parent, title, badge, id, note, actions, aside, children } = props;
  return (
    <div className={classes.page}>
      <header className={classes.header}>
        <div className={classes.names}>
          <nav aria-label="Path" className={classes.path}>
            <PageLink to={parent.to}>{parent.label}</PageLink>
            {id !== undefined && (
              <>
                <span aria-hidden="true">/</span>
                <span className={classes.id}>
                  <code>{id}</code>
                  <CopyButton value={id} label="Copy id" />
                </span>
              </>
            )}
          </nav>
          <div className={classes.heading}>
            <h1 className={classes.title}>
              {typeof title === 'string' ? <Exact text={title} /> : title}
            </h1>
            {badge}
          </div>
          {note !== undefined && <div className={classes.note}>{note}</div>}
        </div>
        {actions !== undefined && <div className={classes.actions}>{actions}</div>}
      </header>
      <div
        className={classes.body}
        data-aside={aside !== undefined || undefined}
        data-form={props.form === true || undefined}
      >
        <div className={classes.content}>{children}</div>
        {aside !== undefined && <aside className={classes.aside}>{aside}</aside>}
      </div>
    </div>
  );
}
