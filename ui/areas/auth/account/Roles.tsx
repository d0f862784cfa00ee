import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../../app/api.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { formatNumberOf } from '../../../parts/format.ts';
import type { Names } from '../../../parts/names.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { namedSummary } from './queries.ts';
import { heldPermissions, whereText } from '../../../app/account/tokenText.ts';
import classes from '../../../app/account/Account.module.css';

type Summary = Schemas['PermissionSummary'];

/** Which roles the user holds where, and what they may do by them. */
export function Roles() {
  const { data, error, refetch } = useQuery(namedSummary);
  return (
    <Section title="Roles" note={data && formatNumberOf(data.roles.length, 'role')}>
      {error !== null && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={data !== undefined} />
      )}
      {data && (data.roles.length > 0 ? <Held summary={data} /> : <NoRoles />)}
    </Section>
  );
}

function NoRoles() {
  return (
    <Empty
      kind="hidden"
      title="You have no role"
      detail="Without one you see nothing. Ask an administrator for one."
    />
  );
}

function Held({ summary }: { summary: Summary }) {
  const { roles, rolesComplete, included } = summary;
  return (
    <>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Role</th>
            <th scope="col">Where it holds</th>
          </tr>
        </thead>
        <tbody>
          {roles.map((role) => (
            <tr key={`${role.roleId} ${role.level} ${whereText(role)}`}>
              <th scope="row" title={role.roleId}>
                {role.name}
              </th>
              <td>{whereText(role, included)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!rolesComplete && <p className={classes.note}>There are more roles than are shown.</p>}
      <Permissions summary={summary} names={included} />
    </>
  );
}

function Permissions({ summary, names }: { summary: Summary; names: Names | undefined }) {
  const held = heldPermissions(summary, names);
  return (
    <details className={classes.fold}>
      <summary>{formatNumberOf(held.length, 'permission')}</summary>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Permission</th>
            <th scope="col">Where you have it</th>
          </tr>
        </thead>
        <tbody>
          {held.map(({ permission, where }) => (
            <tr key={permission}>
              <th scope="row" className={classes.permission}>
                {permission}
              </th>
              <td>{where}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
