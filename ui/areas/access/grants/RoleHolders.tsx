import { useQuery } from '@tanstack/react-query';
import { formatNumberOf } from '../../../parts/format.ts';
import { mergeNames } from '../../../parts/names.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { NewButton } from '../NewButton.tsx';
import { assignmentsQuery, mappingsQuery } from './grantQueries.ts';
import { GrantTable } from './GrantTable.tsx';
import classes from '../Access.module.css';

/** Who has a role, and where: accounts and groups. */
export function RoleHolders({ roleId }: { roleId: string }) {
  const assigned = useQuery(assignmentsQuery({ roleId: [roleId] }));
  const mapped = useQuery(mappingsQuery({ roleId: [roleId] }));
  const error = assigned.error ?? mapped.error;
  const grants =
    assigned.data && mapped.data
      ? {
          items: [...mapped.data.items, ...assigned.data.items],
          names: mergeNames([assigned.data.names, mapped.data.names]),
          isCut: assigned.data.isCut || mapped.data.isCut,
        }
      : undefined;
  return (
    <Section
      title="Who has it"
      note={grants && formatNumberOf(grants.items.length, 'grant')}
      actions={
        <>
          <NewButton
            to="/access/assignments/new"
            permission="rbac:write"
            variant="default"
            search={{ roleId }}
          >
            Assign it
          </NewButton>
          <NewButton
            to="/access/mappings/new"
            permission="rbac:write"
            variant="default"
            search={{ roleId }}
          >
            Map a group
          </NewButton>
        </>
      }
    >
      {error && (
        <ProblemNote
          problem={error}
          retry={() => void Promise.all([assigned.refetch(), mapped.refetch()])}
        />
      )}
      {grants?.items.length === 0 && (
        <p className={classes.muted}>Nobody that you may see has this role.</p>
      )}
      {grants && grants.items.length > 0 && (
        <GrantTable label="Who has it: grants" grants={grants} without="role" />
      )}
    </Section>
  );
}
