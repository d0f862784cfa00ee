import { useQuery } from '@tanstack/react-query';
import { formatNumberOf } from '../../../parts/format.ts';
import { mergeNames } from '../../../parts/names.ts';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { RBAC_READERS } from '../accessViews.ts';
import { NewButton } from '../NewButton.tsx';
import {
  assignmentsQuery,
  mappingsQuery,
  type Assignment,
  type Grant,
  type Grants,
  type Mapping,
} from './grantQueries.ts';
import { GrantTable } from './GrantTable.tsx';
import classes from '../Access.module.css';

type Props = {
  account: { id: string; providerId?: string };
  /** At the identity provider; none for local and service accounts. */
  groups?: readonly string[];
};

/** What an account has: its own assignments, and what its groups are mapped to. */
function useAccountGrants({ account: { id, providerId = '' }, groups = [] }: Props) {
  const { canAnywhere } = usePermissions();
  const isReader = RBAC_READERS.some(canAnywhere);
  const assigned = useQuery({ ...assignmentsQuery({ userId: [id] }), enabled: isReader });
  const hasGroups = groups.length > 0;
  const mapped = useQuery({
    ...mappingsQuery({ providerId: [providerId] }),
    enabled: isReader && hasGroups,
  });
  const own: Grants<Assignment> | undefined = assigned.data;
  const byGroup = (mapped.data?.items ?? []).filter(({ externalGroup }: Mapping) =>
    groups.includes(externalGroup),
  );
  const isRead = own !== undefined && (!hasGroups || mapped.data !== undefined);
  const grants: Grants<Grant> | undefined = isRead
    ? {
        items: [...own.items, ...byGroup],
        names: mergeNames([own.names, mapped.data?.names]),
        isCut: own.isCut || (mapped.data?.isCut ?? false),
      }
    : undefined;
  return {
    isReader,
    grants,
    error: assigned.error ?? mapped.error,
    retry: () => Promise.all([assigned.refetch(), hasGroups && mapped.refetch()]),
  };
}

/** The roles of an account and where they hold. */
export function AccountGrants(props: Props) {
  const { isReader, grants, error, retry } = useAccountGrants(props);
  const { id } = props.account;
  return (
    <Section
      title="Roles and where"
      note={grants && formatNumberOf(grants.items.length, 'grant')}
      actions={
        <NewButton
          to="/access/assignments/new"
          permission="rbac:write"
          variant="default"
          search={{ userId: id }}
        >
          Assign role
        </NewButton>
      }
    >
      {!isReader && <p className={classes.muted}>This needs the permission rbac:read.</p>}
      {error && <ProblemNote problem={error} retry={() => void retry()} />}
      {grants?.items.length === 0 && (
        <p className={classes.muted}>
          No role that you may see. Without one, the account can do nothing.
        </p>
      )}
      {grants && grants.items.length > 0 && (
        <GrantTable
          label="Roles and where: grants"
          grants={grants}
          without="who"
          source={(grant) =>
            'userId' in grant ? 'assignment' : `membership in ${grant.externalGroup}`
          }
        />
      )}
    </Section>
  );
}
