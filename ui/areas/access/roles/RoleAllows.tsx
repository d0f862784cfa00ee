import { useQuery } from '@tanstack/react-query';
import { formatNumberOf } from '../../../parts/format.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { JobTypePatterns } from './JobTypePatterns.tsx';
import { PermissionMatrix } from './PermissionMatrix.tsx';
import { roleQuery, type Role } from './roleQueries.ts';
import { usePermissionNames } from './usePermissionNames.ts';
import classes from '../Access.module.css';

type Props = {
  roleId: string;
  /** Below a choice: closed until it is wanted. */
  folded?: boolean;
};

/** What a role allows. */
export function RoleAllows({ roleId, folded = false }: Props) {
  const { data, error, refetch } = useQuery(roleQuery(roleId));
  if (error) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (!data) return null;
  const count = formatNumberOf(data.permissions.length, 'permission');
  if (folded)
    return (
      <details className={classes.fold}>
        <summary>
          What {data.name} allows: {count}
        </summary>
        <Allowed role={data} />
      </details>
    );
  return (
    <Section title={`What ${data.name} allows`} note={count}>
      <Allowed role={data} />
    </Section>
  );
}

/** The permissions of a role, and the job types that it names. */
export function Allowed({ role }: { role: Role }) {
  const permissions = usePermissionNames();
  return (
    <div className={classes.stack}>
      <PermissionMatrix
        label={`Permissions of ${role.name}`}
        permissions={permissions}
        chosen={new Set(role.permissions)}
      />
      <div>
        <div className={classes.label}>Job types granted by name</div>
        <JobTypePatterns jobTypes={role.jobTypes} />
      </div>
    </div>
  );
}
