import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { TokenSection } from '../../../app/account/TokenSection.tsx';
import { useLiveRefresh } from '../../../app/live.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { Actor } from '../../../parts/Actor.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { labelOf } from '../../../parts/names.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { AuditSection } from '../AuditSection.tsx';
import { AccountGrants } from '../grants/AccountGrants.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { accountState } from '../users/userText.ts';
import { ServiceActions } from './ServiceActions.tsx';
import { serviceQuery, SERVICES_KEY, type ServiceAccount } from './serviceQueries.ts';

const route = getRouteApi('/frame/access/service-accounts/$accountId');

const PARENT = { label: 'Service accounts', to: '/access/service-accounts' };

/** A service account: who is responsible for it, what it may do, and its tokens. */
export function ServicePage() {
  const { accountId } = route.useParams();
  const { data: account, error, refetch } = useQuery(serviceQuery(accountId));
  useTitle(account && `Service account ${account.name}`);
  useLiveRefresh(['auth.user.*'], SERVICES_KEY, ({ subject }) => subject.id === accountId);
  useLiveRefresh(['rbac.*'], ['access', 'grants']);
  if (!account)
    return (
      <UnreadRecord
        parent={PARENT}
        title="Service account"
        id={accountId}
        error={error}
        retry={refetch}
      />
    );
  return (
    <RecordPage
      parent={PARENT}
      id={account.id}
      title={account.displayName}
      badge={<StatusBadge status={accountState(account)} />}
      note={account.name === account.displayName ? undefined : account.name}
      actions={<ServiceActions key={account.id} account={account} />}
      aside={<Facts account={account} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <AccountGrants account={account} />
      <Tokens account={account} />
      <AuditSection title="What the account has done" by="actorId" id={account.id} />
      <AuditSection title="What was done to the account" by="subjectId" id={account.id} />
    </RecordPage>
  );
}

function Tokens({ account: { id, tenantId } }: { account: ServiceAccount }) {
  const { tokens: status = 'active' } = route.useSearch();
  const navigate = route.useNavigate();
  const { whyNot } = usePermissions();
  return (
    <TokenSection
      accountId={id}
      owner="it"
      isService
      status={status}
      onStatus={(value) =>
        void navigate({ search: value === 'active' ? {} : { tokens: value }, replace: true })
      }
      newButton={(create) => (
        <PermissionButton permission="user:write" where={{ tenantId }} icon="plus" onClick={create}>
          New token
        </PermissionButton>
      )}
      whyNot={() => whyNot('user:write', { tenantId })}
      empty="A program sends the text of a token with each request. You can create one if you have every permission of the account. Tokens of runners are created on the page of their pool."
    />
  );
}

type Named = ServiceAccount & { included?: Parameters<typeof labelOf>[0] };

function Facts({ account }: { account: Named }) {
  const { included: names, tenantId, ownerId } = account;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Account', value: account.name },
          { label: 'Owner', value: <Actor id={ownerId} names={names} full /> },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Created', value: <Time value={account.createdAt} /> },
          { label: 'Changed', value: <Time value={account.updatedAt} /> },
        ]}
      />
      <PageLink to="/access/explain" search={{ userId: account.id }}>
        Why can {account.displayName} …
      </PageLink>
    </Section>
  );
}
