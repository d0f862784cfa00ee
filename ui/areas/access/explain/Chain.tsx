import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { whereText } from '../../../app/account/tokenText.ts';
import { Actor } from '../../../parts/Actor.tsx';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import { labelOf, type Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { mappingQuery } from '../grants/grantQueries.ts';
import type { ExplainedGrant } from './explainQueries.ts';
import classes from '../Access.module.css';

type Props = {
  grant: ExplainedGrant;
  userId: string;
  names: Names | undefined;
  /** What was asked about, in words. */
  asked: string;
  /** What the role does, such as `includes job:write`. */
  conclusion: ReactNode;
};

/** One reason, link by link: who has the role by what, where it holds, and what it includes. */
export function Chain({ grant, userId, names, asked, conclusion }: Props) {
  const where = whereText(grant, names);
  const role = (
    <RecordLink
      id={grant.roleId}
      label={labelOf(names, grant.roleId, 'roles') ?? grant.roleId}
      kind="roles"
    />
  );
  return (
    <ol className={classes.chain}>
      <li>
        {grant.kind === 'mapping' ? (
          <ByGroup grant={grant} userId={userId} names={names} />
        ) : (
          <>
            <Actor id={userId} names={names} /> has the role {role} by an{' '}
            <AppLink to={recordPath(grant.id)}>assignment</AppLink>.
          </>
        )}
      </li>
      <li>
        It holds {where === 'everywhere' ? 'everywhere' : `at ${where}`}
        {where !== asked && `, which includes ${asked}`}.
      </li>
      <li>
        The role {role} {conclusion}.
      </li>
    </ol>
  );
}

type GroupProps = Pick<Props, 'grant' | 'userId' | 'names'>;

function ByGroup({ grant, userId, names }: GroupProps) {
  const { data } = useQuery(mappingQuery(grant.id));
  return (
    <>
      <Actor id={userId} names={names} />{' '}
      {data ? (
        <>
          was in the group <Exact text={data.externalGroup} /> of{' '}
          <RecordLink id={data.providerId} names={data.included} kind="providers" /> at the last
          login, and a <AppLink to={recordPath(grant.id)}>mapping</AppLink> grants the role to its
          members.
        </>
      ) : (
        <>
          has the role by a <AppLink to={recordPath(grant.id)}>mapping</AppLink> of a group.
        </>
      )}
    </>
  );
}
