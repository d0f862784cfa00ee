import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { RevokeDialog } from '../../../app/account/RevokeDialog.tsx';
import { RotateDialog } from '../../../app/account/RotateDialog.tsx';
import { TokenDialog } from '../../../app/account/TokenDialog.tsx';
import { tokenQuery } from '../../../app/account/tokenQueries.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { usePolling } from '../../../app/usePolling.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { Actor } from '../../../parts/Actor.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { labelOf, type Names } from '../../../parts/names.ts';
import { ReasonButton } from '../../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { AuditSection } from '../AuditSection.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import type { Token } from './tokenColumns.tsx';
import { TokenLimits } from './TokenLimits.tsx';

const route = getRouteApi('/frame/access/tokens/$tokenId');

const PARENT = { label: 'Tokens', to: '/access/tokens' };
/** Its uses are no events. */
const REFRESH_MS = 15_000;

/** An API token: whose it is, what it may do, and its use. */
export function TokenPage() {
  const { tokenId } = route.useParams();
  const query = tokenQuery(tokenId);
  const { data: token, error, refetch } = useQuery(query);
  useTitle(token && `Token ${token.name}`);
  usePolling(query.queryKey, REFRESH_MS);
  if (!token)
    return (
      <UnreadRecord parent={PARENT} title="Token" id={tokenId} error={error} retry={refetch} />
    );
  return (
    <RecordPage
      parent={PARENT}
      id={token.id}
      title={token.name}
      badge={<StatusBadge status={token.status} />}
      actions={<Actions key={token.id} token={token} />}
      aside={<Facts token={token} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <TokenLimits token={token} names={token.included} />
      <AuditSection title="History" by="subjectId" id={token.id} />
    </RecordPage>
  );
}

function Actions({ token }: { token: Token }) {
  const { account, whyNot } = useSession();
  const [action, setAction] = useState<'narrow' | 'rotate' | 'revoke'>();
  const close = () => setAction(undefined);
  const isOwn = token.userId === account?.id;
  const isPersonal = token.kind === 'personal';
  const mine = isOwn ? undefined : whyNot('user:write', { tenantId: token.tenantId });
  const rotate =
    isPersonal && !isOwn ? 'Only its owner can rotate a personal token.' : (mine ?? undefined);
  const inactive = token.status === 'active' ? undefined : `The token is ${token.status}.`;
  if (token.status === 'revoked') return null;
  return (
    <>
      <ReasonButton variant="default" icon="edit" reason={mine} onClick={() => setAction('narrow')}>
        Rename or narrow
      </ReasonButton>
      <ReasonButton
        variant="default"
        icon="refresh"
        reason={rotate ?? inactive}
        onClick={() => setAction('rotate')}
      >
        Rotate
      </ReasonButton>
      <ReasonButton
        variant="default"
        icon="trash"
        reason={mine}
        onClick={() => setAction('revoke')}
      >
        Revoke
      </ReasonButton>
      <TokenDialog
        key={`narrow ${action === 'narrow'}`}
        opened={action === 'narrow'}
        token={token}
        owner={isOwn ? 'you' : 'it'}
        onClose={close}
      />
      <RotateDialog
        key={`rotate ${action === 'rotate'}`}
        opened={action === 'rotate'}
        token={token}
        onClose={close}
      />
      <RevokeDialog opened={action === 'revoke'} token={token} onClose={close} />
    </>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  personal: 'Personal',
  service: 'Of a service account',
  runner: 'Of runners',
};

function Facts({ token }: { token: Token & { included?: Names | undefined } }) {
  const { included: names, tenantId, lastUsedAddress } = token;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Account', value: <Actor id={token.userId} names={names} full /> },
          { label: 'Kind', value: KINDS[token.kind] ?? token.kind },
          { label: 'Expires', value: <Time value={token.expiresAt} format="full" /> },
          { label: 'Last used', value: <Time value={token.lastUsedAt} none="Never" /> },
          lastUsedAddress !== null && { label: 'Last used from', value: lastUsedAddress },
          token.rotatedAt !== null && { label: 'Rotated', value: <Time value={token.rotatedAt} /> },
          token.previousValidUntil !== null && {
            label: 'Former secret valid until',
            value: <Time value={token.previousValidUntil} />,
          },
          token.disabledAt !== null && {
            label: 'Disabled, since not used for 90 days',
            value: <Time value={token.disabledAt} />,
          },
          token.revokedAt !== null && {
            label: 'Revoked',
            value: (
              <>
                <Time value={token.revokedAt} /> by <Actor id={token.revokedBy} names={names} />
              </>
            ),
          },
          { label: 'Tenant', value: labelOf(names, tenantId, 'tenants') ?? tenantId },
          { label: 'Created', value: <Time value={token.createdAt} /> },
          { label: 'Created by', value: <Actor id={token.createdBy} names={names} /> },
        ]}
      />
    </Section>
  );
}
