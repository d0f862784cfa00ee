import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Navigate } from '@tanstack/react-router';
import { listText } from '../../../app/account/tokenText.ts';
import { TokenSection } from '../../../app/account/TokenSection.tsx';
import { useLiveRefresh } from '../../../app/live.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { labelOf } from '../../../parts/names.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { useNow } from '../../../parts/useNow.ts';
import { AuditSection } from '../AuditSection.tsx';
import { AccountGrants } from '../grants/AccountGrants.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { UserActions } from './UserActions.tsx';
import { isServiceQuery, LOCAL_PROVIDER, userQuery, USERS_KEY, type User } from './userQueries.ts';
import { UserSessions } from './UserSessions.tsx';
import { accountState } from './userText.ts';

const route = getRouteApi('/frame/access/users/$userId');

const PARENT = { label: 'Users', to: '/access/users' };

/** A user: what they may do and by what, where they are signed in, and what they have done. */
export function UserPage() {
  const { userId } = route.useParams();
  const { data: user, error, refetch } = useQuery(userQuery(userId));
  const isMissing = problemFields(error ?? {}).status === 404;
  const { data: isService } = useQuery({ ...isServiceQuery(userId), enabled: isMissing });
  useTitle(user && `User ${user.username}`);
  const isOfUser = ({ subject }: { subject: { id: string } }) => subject.id === userId;
  useLiveRefresh(['auth.user.*'], USERS_KEY, isOfUser);
  useLiveRefresh(['rbac.*'], ['access', 'grants']);
  if (isMissing && isService === true)
    return (
      <Navigate to="/access/service-accounts/$accountId" params={{ accountId: userId }} replace />
    );
  if (!user)
    return <UnreadRecord parent={PARENT} title="User" id={userId} error={error} retry={refetch} />;
  return (
    <RecordPage
      parent={PARENT}
      id={user.id}
      title={user.displayName}
      badge={<StatusBadge status={accountState(user)} />}
      note={user.username === user.displayName ? undefined : user.username}
      actions={<UserActions key={user.id} user={user} />}
      aside={<Facts user={user} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <AccountGrants account={user} groups={user.groups} />
      <UserSessions user={user} />
      <Tokens user={user} />
      <AuditSection title="What the user has done" by="actorId" id={user.id} />
      <AuditSection title="What was done to the account" by="subjectId" id={user.id} />
    </RecordPage>
  );
}

function Tokens({ user: { id, tenantId } }: { user: User }) {
  const { tokens: status = 'active' } = route.useSearch();
  const navigate = route.useNavigate();
  const { whyNot } = usePermissions();
  return (
    <TokenSection
      accountId={id}
      owner="it"
      status={status}
      onStatus={(value) =>
        void navigate({ search: value === 'active' ? {} : { tokens: value }, replace: true })
      }
      whyNot={(action) =>
        action === 'rotate'
          ? 'Only its owner can rotate a personal token.'
          : whyNot('user:write', { tenantId })
      }
      empty="Only the user can create personal tokens. A service account can have tokens that you create."
    />
  );
}

function PasswordEnd({ at }: { at: string }) {
  const now = useNow();
  return (
    <>
      <Time value={at} format="full" />
      {Date.parse(at) <= now && ' (expired)'}
    </>
  );
}

type Named = User & { included?: Parameters<typeof labelOf>[0] };

function Facts({ user }: { user: Named }) {
  const { included: names, providerId, tenantId, groups } = user;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'User name', value: user.username },
          { label: 'E-mail', value: user.email },
          {
            label: 'Signs in with',
            value:
              providerId === LOCAL_PROVIDER ? (
                'A password of a local account'
              ) : (
                <RecordLink id={providerId} names={names} kind="providers" />
              ),
          },
          user.passwordExpiresAt !== null && {
            label: 'One-time password valid until',
            value: <PasswordEnd at={user.passwordExpiresAt} />,
          },
          { label: 'Last login', value: <Time value={user.lastLoginAt} none="Never" /> },
          providerId !== LOCAL_PROVIDER && {
            label: 'Groups, as of the last login',
            value: groups.length === 0 ? 'None' : listText(groups),
          },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Created', value: <Time value={user.createdAt} /> },
          { label: 'Changed', value: <Time value={user.updatedAt} /> },
        ]}
      />
      <PageLink to="/access/explain" search={{ userId: user.id }}>
        Why can {user.displayName} …
      </PageLink>
    </Section>
  );
}
