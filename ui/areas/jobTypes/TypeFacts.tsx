import { useQuery } from '@tanstack/react-query';
import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { describeRetries } from '../../parts/form/retryPolicy.ts';
import { formatDuration } from '../../parts/format.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { JobTypeWithVersions } from './typeQueries.ts';
import { rolesQuery } from './typeQueries.ts';
import {
  acceptedDefinition,
  concurrencyText,
  originText,
  rolesThatRun,
  secretsIn,
  shortDigest,
  whoMayRun,
} from './typeText.ts';

/** Who runs a type, who may run it, and its limits. */
export function TypeFacts({ type }: { type: JobTypeWithVersions }) {
  const { origin, pools, runners, digest, acceptedBy, acceptedAt, concurrency } = type;
  const roles = useRoles();
  const secrets = secretsIn(acceptedDefinition(type) ?? type.versions[0]?.definition);
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Origin', value: originText(origin) },
          pools.length > 0 && { label: 'Pool', value: <Pools pools={pools} /> },
          runners !== null && { label: 'Living runners', value: String(runners) },
          { label: 'Who may run it', value: whoMayRun(type) },
          type.createdOnlyBy === null && {
            label: 'Roles that can run it',
            value: roles && (rolesThatRun(roles, type).join(', ') || 'None'),
          },
          secrets.length > 0 && { label: 'Secrets', value: <Secrets secrets={secrets} /> },
          type.permission !== null && {
            label: 'Permission',
            value: <code>{type.permission}</code>,
          },
          { label: 'You may run it', value: type.mayRun ? 'Yes' : 'No' },
          { label: 'Is about', value: type.targets === 'none' ? 'No record' : `A ${type.targets}` },
          { label: 'Time limit', value: formatDuration(type.timeoutMs) },
          { label: 'Retries', value: describeRetries(type.retryPolicy) },
          concurrency !== null && {
            label: 'At a time',
            value: concurrencyText(concurrency),
          },
          acceptedAt !== null && {
            label: 'Accepted',
            value: (
              <>
                <Time value={acceptedAt} />
                {acceptedBy !== null && (
                  <>
                    {' '}
                    by <Actor id={acceptedBy} names={type.included} />
                  </>
                )}
              </>
            ),
          },
          acceptedAt !== null &&
            digest !== null && {
              label: 'Accepted version',
              value: <code title={digest}>{shortDigest(digest)}</code>,
            },
        ]}
      />
    </Section>
  );
}

/** The roles, if the user may read them. */
function useRoles() {
  const { canAnywhere } = usePermissions();
  const enabled = canAnywhere('rbac:read') || canAnywhere('rbac:write');
  return useQuery({ ...rolesQuery, enabled }).data?.items;
}

/** Pools, with their pages for those who may read them. */
function Pools({ pools }: { pools: readonly string[] }) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('jobtype:read') && !canAnywhere('jobtype:write')) return pools.join(', ');
  return pools.map((pool) => (
    <AppLink key={pool} to={`/runners/pools/${pool}`}>
      {pool}
    </AppLink>
  ));
}

/** What the code of a type gets, by the name that it reads. */
function Secrets({ secrets }: { secrets: readonly { as: string; secret: string }[] }) {
  const { canAnywhere } = usePermissions();
  return secrets.map(({ as, secret }) => (
    <div key={as}>
      <code>{as}</code>:{' '}
      {canAnywhere('secret:read') ? (
        <AppLink to={`/secrets?name=${secret}`}>{secret}</AppLink>
      ) : (
        secret
      )}
    </div>
  ));
}
