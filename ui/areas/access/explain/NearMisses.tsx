import { useQuery } from '@tanstack/react-query';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Section } from '../../../parts/Section.tsx';
import { assignmentsQuery } from '../grants/grantQueries.ts';
import { ScopeText } from '../grants/ScopeText.tsx';
import { NewButton } from '../NewButton.tsx';
import { rolesQuery } from '../roles/roleQueries.ts';
import type { Question } from './explainQueries.ts';
import classes from '../Access.module.css';

type Props = { question: Question };

const textOnly = ({ userId, tenantId, siteId, deviceId }: Question) => ({
  userId,
  ...(tenantId !== undefined && { tenantId }),
  ...(siteId !== undefined && { siteId }),
  ...(deviceId !== undefined && { deviceId }),
});

/** What the account has elsewhere or without the permission, and the roles that would include it. */
export function NearMisses({ question }: Props) {
  const { data: roles = [] } = useQuery(rolesQuery);
  const including = roles.filter(({ permissions }) => permissions.includes(question.permission));
  return (
    <>
      <Assigned
        question={question}
        isIncluded={(roleId) => including.some(({ id }) => id === roleId)}
      />
      <Section
        title="Roles that include it"
        actions={
          <NewButton
            to="/access/assignments/new"
            permission="rbac:write"
            variant="default"
            search={textOnly(question)}
          >
            Assign role
          </NewButton>
        }
      >
        <ul className={classes.chips}>
          {including.map(({ id, name }) => (
            <li key={id} className={classes.chip}>
              <AppLink to={recordPath(id, 'roles')}>
                <Exact text={name} />
              </AppLink>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

type AssignedProps = Props & { isIncluded: (roleId: string) => boolean };

function Assigned({ question: { userId, permission }, isIncluded }: AssignedProps) {
  const { data } = useQuery(assignmentsQuery({ userId: [userId] }));
  return (
    <Section title="What is assigned to the account">
      {data?.items.length === 0 && <p className={classes.muted}>No role that you may see.</p>}
      {data && data.items.length > 0 && (
        <div className={classes.scroll} tabIndex={0} role="region" aria-label="Its assignments">
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">Role</th>
                <th scope="col">Where</th>
                <th scope="col">
                  Includes <code>{permission}</code>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((grant) => (
                <tr key={grant.id}>
                  <td>
                    <RecordLink id={grant.roleId} names={data.names} kind="roles" />
                  </td>
                  <td>
                    <ScopeText grant={grant} names={data.names} />
                  </td>
                  <td>{isIncluded(grant.roleId) ? 'Yes' : 'No'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}
