import { whereText } from '../../../app/account/tokenText.ts';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import type { Names } from '../../../parts/names.ts';
import { Section } from '../../../parts/Section.tsx';
import { PermissionMatrix } from '../roles/PermissionMatrix.tsx';
import { usePermissionNames } from '../roles/usePermissionNames.ts';
import type { Token } from './tokenColumns.tsx';
import classes from '../Access.module.css';

type Props = { token: Token; names: Names | undefined };

const ALL = 'No limit';

/** What a token may do at most. */
export function TokenLimits({ token, names }: Props) {
  const permissions = usePermissionNames();
  const { pools, resourceScopes, jobTypes, allowedNetworks, requestsPerMinute } = token;
  if (pools !== null)
    return (
      <Section title="What it may do">
        <p className={classes.muted}>
          It takes jobs of the pools {pools.join(', ')}, and can do nothing else.
        </p>
      </Section>
    );
  return (
    <Section title="What it may do">
      <p className={classes.muted}>
        What its account may do at the time of a request, within these limits.
      </p>
      <DescriptionList
        items={[
          {
            label: 'Where',
            value:
              resourceScopes?.map((scope) => whereText(scope, names)).join(', ') ??
              'Wherever its account may do it',
          },
          { label: 'Reading only', value: token.readOnly ? 'Yes' : 'No' },
          { label: 'Job types', value: jobTypes?.join(', ') ?? ALL },
          { label: 'Networks', value: allowedNetworks?.join(', ') ?? ALL },
          {
            label: 'Requests a minute',
            value: requestsPerMinute ?? 'The setting of the installation',
          },
          token.permissions === null && {
            label: 'Permissions',
            value: 'All that its account has',
          },
        ]}
      />
      {token.permissions !== null && (
        <PermissionMatrix
          label="Permissions of the token"
          permissions={permissions}
          chosen={new Set(token.permissions)}
        />
      )}
    </Section>
  );
}
