import { Button, SegmentedControl } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Empty } from '../../parts/Empty.tsx';
import { mergeNames } from '../../parts/names.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import type { Schemas } from '../api.ts';
import type { Owner, TokenAction } from './fields.ts';
import { RevokeDialog } from './RevokeDialog.tsx';
import { RotateDialog } from './RotateDialog.tsx';
import { TokenDialog } from './TokenDialog.tsx';
import { TokenItem } from './TokenItem.tsx';
import { tokenQuery, tokensQuery, type TokenStatus } from './tokenQueries.ts';
import classes from './Account.module.css';

type Token = Schemas['Token'];
type Dialog = { action: TokenAction | 'create'; token?: Token } | undefined;

const STATUSES: readonly { value: TokenStatus; label: string }[] = [
  { value: 'active', label: 'Active' },
  { value: 'disabled', label: 'Disabled' },
  { value: 'expired', label: 'Expired' },
  { value: 'revoked', label: 'Revoked' },
];

type Props = {
  /** The account whose tokens they are. */
  accountId: string;
  owner: Owner;
  /** They are those of a service account. */
  isService?: boolean | undefined;
  status: TokenStatus;
  onStatus: (status: TokenStatus) => void;
  /** The button for a new token; without it, none can be created here. */
  newButton?: ((create: () => void) => ReactNode) | undefined;
  whyNot?: ((action: TokenAction) => string | undefined) | undefined;
  /** What is said if there is no active token. */
  empty: string;
  children?: ReactNode;
};

/** A token of the list as it is while a dialog is about it: the list may no longer have it. */
function usePresent(listed: Token | undefined): Token | undefined {
  const { data: read } = useQuery({
    ...tokenQuery(listed?.id ?? ''),
    enabled: listed !== undefined,
    retry: false,
  });
  return listed && read && read.version > listed.version ? read : listed;
}

/** The API tokens of an account, and what can be done with them. */
export function TokenSection(props: Props) {
  const { accountId, owner, isService = false, status, onStatus, newButton } = props;
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const { action } = dialog ?? {};
  const token = usePresent(dialog?.token);
  return (
    <Section title="API tokens" actions={newButton?.(() => setDialog({ action: 'create' }))}>
      {props.children}
      <div className={classes.tools}>
        <SegmentedControl
          aria-label="Tokens shown"
          data={[...STATUSES]}
          value={status}
          onChange={onStatus}
        />
      </div>
      <TokenList {...props} onAction={setDialog} />
      <TokenDialog
        key={`${action} ${token?.id}`}
        opened={action === 'create' || action === 'narrow'}
        token={token}
        accountId={isService ? accountId : undefined}
        owner={owner}
        onClose={close}
      />
      {token && (
        <RotateDialog
          key={`rotate ${token.id}`}
          opened={action === 'rotate'}
          token={token}
          onClose={close}
        />
      )}
      {token && <RevokeDialog opened={action === 'revoke'} token={token} onClose={close} />}
    </Section>
  );
}

type ListProps = Pick<Props, 'accountId' | 'owner' | 'status' | 'whyNot' | 'empty'> & {
  onAction: (dialog: Dialog) => void;
};

function TokenList({ accountId, owner, status, whyNot, empty, onAction }: ListProps) {
  const list = useInfiniteQuery(tokensQuery(accountId, status));
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
              owner={owner}
              whyNot={whyNot}
              onAction={(action) => onAction({ action, token })}
            />
          ))}
        </ul>
      )}
      {items?.length === 0 &&
        (status === 'active' ? (
          <Empty kind="nothing" title="No active tokens" detail={empty} />
        ) : (
          <Empty kind="filtered" title={`No ${status} tokens`} />
        ))}
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
