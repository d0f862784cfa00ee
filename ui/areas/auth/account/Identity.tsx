import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { providerKinds } from '../../../app/session/SignInForm.tsx';
import { useSession } from '../../../app/session/useSession.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { ReasonButton } from '../../../parts/PermissionButton.tsx';
import { Section } from '../../../parts/Section.tsx';
import { Time } from '../../../parts/Time.tsx';
import { PasswordDialog } from './PasswordDialog.tsx';
import { listText } from '../../../app/account/tokenText.ts';
import classes from '../../../app/account/Account.module.css';

const LOCAL = 'local';

/** The name of the provider that confirms who the user is. */
function useProviderName(providerId: string | undefined): string {
  const { data } = useQuery(providerKinds);
  if (providerId === undefined) return 'A gateway in front of Holdfast';
  if (providerId === LOCAL) return 'Local account';
  return data?.items.find(({ id }) => id === providerId)?.name ?? providerId;
}

/** Who the user is, and who says so. */
export function Identity() {
  const { user, account, tenant } = useSession();
  const provider = useProviderName(account?.providerId);
  const [password, setPassword] = useState<'changes' | 'changed'>();
  const reason =
    account?.providerId === LOCAL ? undefined : `${provider} manages the password of this account.`;
  return (
    <Section
      title={user.displayName}
      actions={
        account && (
          <ReasonButton
            variant="default"
            icon="lock"
            reason={reason}
            onClick={() => setPassword('changes')}
          >
            Change password
          </ReasonButton>
        )
      }
    >
      <DescriptionList
        items={[
          { label: 'User name', value: user.username },
          account && { label: 'E-mail', value: account.email },
          { label: 'Signed in by', value: provider },
          account && { label: 'Tenant', value: account.tenantId },
          { label: 'New records in', value: tenant },
          account &&
            account.groups.length > 0 && { label: 'Groups', value: listText(account.groups) },
          account && { label: 'Last login', value: <Time value={account.lastLoginAt} /> },
          {
            label: 'Id',
            value: (
              <>
                <code>{user.id}</code> <CopyButton value={user.id} label="Copy id" />
              </>
            ),
          },
        ]}
      />
      {password === 'changed' && (
        <p className={classes.note} role="status">
          The password is changed. Your other sessions have ended.
        </p>
      )}
      <PasswordDialog
        opened={password === 'changes'}
        onClose={() => setPassword(undefined)}
        onChanged={() => setPassword('changed')}
      />
    </Section>
  );
}
