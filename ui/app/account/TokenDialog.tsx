import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { answer, api, type Schemas } from '../api.ts';
import { useIdempotencyKeys } from '../idempotency.ts';
import type { Form, Owner } from './fields.ts';
import { TOKENS_KEY } from './tokenQueries.ts';
import { EMPTY_FORM, formOf, toChange, toRequest } from './tokenForm.ts';
import { TokenFields } from './TokenFields.tsx';
import { TokenSecret } from './TokenSecret.tsx';
import { Dialog } from '../../parts/Dialog.tsx';
import { ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { serverNow } from '../../parts/clock.ts';
import { usePreferences } from '../../parts/preferences.tsx';

type Token = Schemas['Token'];
type Props = {
  opened: boolean;
  /** The token to narrow; undefined for a new one. */
  token: Token | undefined;
  /** The service account that a new token is for; undefined: the user. */
  accountId?: string | undefined;
  owner: Owner;
  onClose: () => void;
};

/** Creates a token, or narrows what one may do. */
export function TokenDialog({ opened, token, accountId, owner, onClose }: Props) {
  const create = useCreate(accountId);
  const made = create.data;
  const title = token ? `Rename or narrow ${token.name}` : made ? made.name : 'New API token';
  return (
    <Dialog
      opened={opened}
      onClose={onClose}
      title={title}
      size="xl"
      withCloseButton={!made}
      closeOnEscape={!made}
    >
      <ShownOnceGuard isNeeded={() => create.isPending} />
      {made && <TokenSecret made={made} onDone={onClose} />}
      {!made && token && <Narrow token={token} owner={owner} onClose={onClose} />}
      {!made && !token && (
        <TokenFields
          start={EMPTY_FORM}
          owner={owner}
          submit="Create token"
          onSubmit={create.mutate}
          busy={create.isPending}
          problem={create.error}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

function useCreate(accountId: string | undefined) {
  const queryClient = useQueryClient();
  const keys = useIdempotencyKeys();
  const { utc } = usePreferences();
  const last = useRef<{ form: Form; body: Schemas['TokenRequest'] }>(undefined);
  return useMutation({
    // The cache forgets what was sent and answered with the page.
    gcTime: 0,
    mutationFn: (form: Form) => {
      // The same request again, after an answer that was lost: its expiry was computed then.
      if (last.current?.form !== form)
        last.current = { form, body: toRequest(form, new Date(serverNow()), utc) };
      const { body } = last.current;
      return keys.once(body, (header) =>
        answer(
          accountId === undefined
            ? api.POST('/api/auth/tokens', { params: { header }, body })
            : api.POST('/api/service-accounts/{id}/tokens', {
                params: { path: { id: accountId }, header },
                body,
              }),
        ),
      );
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: TOKENS_KEY }),
  });
}

type NarrowProps = { token: Token; owner: Owner; onClose: () => void };

function Narrow({ token: present, owner, onClose }: NarrowProps) {
  const queryClient = useQueryClient();
  const { utc } = usePreferences();
  // What is typed differs from this token: changes of others would be taken back with a newer one.
  const [token] = useState(present);
  const { id, version } = token;
  const narrow = useMutation({
    mutationFn: (form: Form) =>
      answer(
        api.PUT('/api/auth/tokens/{id}', {
          params: { path: { id }, header: { 'If-Match': `"${version}"` } },
          body: toChange(form, token, new Date(serverNow()), utc),
        }),
      ),
    onSuccess: onClose,
    onSettled: () => queryClient.invalidateQueries({ queryKey: TOKENS_KEY }),
  });
  return (
    <TokenFields
      start={formOf(token)}
      token={token}
      owner={owner}
      submit="Save"
      onSubmit={narrow.mutate}
      busy={narrow.isPending}
      problem={narrow.error}
      onCancel={onClose}
    />
  );
}
