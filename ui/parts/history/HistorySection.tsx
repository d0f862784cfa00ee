import type { ReactNode } from 'react';
import type { Schemas } from '../../app/api.ts';
import { Actor } from '../Actor.tsx';
import type { Names } from '../names.ts';
import { PageLink } from '../PageLink.tsx';
import { usePermissions } from '../permissions.tsx';
import { ProblemNote } from '../ProblemNote.tsx';
import { Section } from '../Section.tsx';
import { Time } from '../Time.tsx';
import classes from './HistorySection.module.css';

type Entry = Schemas['AuditEntry'];

type Props = {
  title: string;
  /** What needs the permission to read the audit log, as the beginning of a sentence. */
  what: string;
  /** The record that the entries are about. */
  subjectId: string;
  /** Undefined until they are read. */
  data: { items: Entry[]; nextCursor: string | null; included?: Names } | undefined;
  error: unknown;
  retry: () => void;
  text: (entry: Entry, names: Names | undefined) => ReactNode;
};

/** The newest entries of the audit log about a record: who has done what with it. */
export function HistorySection(props: Props) {
  const { title, what, subjectId, data, error, retry, text } = props;
  const isReader = usePermissions().canAnywhere('audit:read');
  return (
    <Section
      title={title}
      actions={
        isReader && (
          <PageLink to="/audit" search={{ subjectId }} className={classes.all}>
            All in the audit log
          </PageLink>
        )
      }
    >
      {!isReader && <p className={classes.muted}>{what} the permission audit:read.</p>}
      {error !== null && error !== undefined && <ProblemNote problem={error} retry={retry} />}
      {data?.items.length === 0 && (
        <p className={classes.muted}>The audit log has nothing about it that you may see.</p>
      )}
      {data && data.items.length > 0 && (
        <table className={classes.history}>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">What</th>
              <th scope="col">Who</th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((entry) => (
              <tr key={entry.id}>
                <td>
                  <Time value={entry.at} />
                </td>
                <td>{text(entry, data.included)}</td>
                <td>
                  <Actor id={entry.actorId} names={data.included} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {data?.nextCursor != null && <p className={classes.muted}>The newest {data.items.length}.</p>}
    </Section>
  );
}
