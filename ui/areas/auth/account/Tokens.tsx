import { Button, SegmentedControl } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../../../app/api.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { mergeNames } from '../../../parts/names.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { Time } from '../../../parts/Time.tsx';
import type { TokenAction } from './fields.ts';
import { expiringQuery, tokensQuery, type TokenStatus } from './queries.ts';
import { RevokeDialog } from './RevokeDialog.tsx';
import { RotateDialog } from './RotateDialog.tsx';
import { TokenDialog } from './TokenDialog.tsx';
import { TokenItem } from './TokenItem.tsx';
import classes from './Account.module.css';

type Token = Schemas['Token'];
type Dialog = { action: TokenAction | 'create'; token?: Token } | undefined;

const STATUSES: readonly { value: TokenStatus; label: string }[] = [
  { value: 'active', label: 'Active' },
  { value: 'disabled', label: 'Disabled' },
  { value: 'expired', label: 'Expired' },
  { value: 'revoked', label: 'Revoked' },
];

const route = getRouteApi('/frame/account');

/** The user's own API tokens. */
export function Tokens() {
  const { tokens: status = 'active' } = route.useSearch();
  const navigate = route.useNavigate();
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const { action, token } = dialog ?? {};
  return (
    <Section
      title="API tokens"
      actions={<Button onClick={() => setDialog({ action: 'create' })}>New token</Button>}
    >
      <ExpiryWarning />
      <div className={classes.tools}>
        <SegmentedControl
          aria-label="Tokens shown"
          data={[...STATUSES]}
          value={status}
          onChange={(value) =>
            void navigate({
              search: value === 'active' ? {} : { tokens: value as TokenStatus },
              replace: true,
            })
          }
        />
      </div>
      <TokenList status={status} onAction={setDialog} />
      <TokenDialog
        key={`${action} ${token?.id}`}
        opened={action === 'create' || action === 'narrow'}
        token={token}
        onClose={close}
      />
      {token && <RotateDialog opened={action === 'rotate'} token={token} onClose={close} />}
      {token && <RevokeDialog opened={action === 'revoke'} token={token} onClose={close} />}
    </Section>
  );
}

/** Says ahead which tokens expire, since what uses them stops. */
function ExpiryWarning() {
  const { user } = useSession();
  const { data } = useQuery(expiringQuery(user.id));
  if (data === undefined || data.items.length === 0) return null;
  return (
    <div className={classes.warning} role="status">
      <strong>What uses these tokens stops soon.</strong> Create others, and replace these: a
      rotated token keeps its expiry.
      <ul>
        {data.items.map(({ id, name, expiresAt }) => (
          <li key={id}>
            {name} expires <Time value={expiresAt} format="relative" />
          </li>
        ))}
        {data.nextCursor !== null && <li>and others</li>}
      </ul>
    </div>
  );
}

type ListProps = { status: TokenStatus; onAction: (dialog: Dialog) => void };

function TokenList({ status, onAction }: ListProps) {
  const { user } = useSession();
  const list = useInfiniteQuery(tokensQuery(user.id, status));
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = list;
  const items = data?.pages.flatMap((page) => page.items);
  const names = mergeNames(data?.pages.map(({ included }) => included) ?? []);
  return (
    <>
      {error !== null && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={data !== undefined} />
      )}
      {items && items.length > 0 && (
        <ul className={classes.list} aria-label="API tokens">
          {items.map((token) => (
            <TokenItem
              key={token.id}
              token={token}
              names={names}
              onAction={(action) => onAction({ action, token })}
            />
          ))}
        </ul>
      )}
      {items?.length === 0 && <NoTokens status={status} />}
      {hasNextPage && (
        <div className={classes.more}>
          <Button
            variant="default"
            loading={isFetchingNextPage}
            onClick={() => void fetchNextPage()}
          >
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

function NoTokens({ status }: { status: TokenStatus }) {
  if (status !== 'active') return <Empty kind="filtered" title={`No ${status} tokens`} />;
  return (
    <Empty
      kind="nothing"
      title="No active tokens"
      detail="A token is for your scripts: it may do at most what you may do. For what must go on when you leave, use a service account."
    />
  );
}
