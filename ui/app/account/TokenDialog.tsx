import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { answer, api, type Schemas } from '../api.ts';
import { useIdempotencyKeys } from '../idempotency.ts';
import type { Form, Owner } from './fields.ts';
import { TOKENS_KEY, tokenQuery } from './tokenQueries.ts';
import { EMPTY_FORM, formOf, toChange, toRequest } from './tokenForm.ts';
import { TokenFields } from './TokenFields.tsx';
import { TokenSecret } from './TokenSecret.tsx';
import { Dialog } from '../../parts/Dialog.tsx';
import { ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { serverNow } from '../../parts/clock.ts';
import { usePreferences } from '../../parts/preferences.tsx';
import { FormConflict } from '../../parts/versioned/FormConflict.tsx';
import { useVersionedForm, type Saving } from '../../parts/versioned/useVersionedForm.ts';

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
export const TokenDialog = ({ token, ...props }: Props) =>
  token ? <NarrowDialog token={token} {...props} /> : <NewDialog {...props} />;

function NewDialog({ opened, accountId, owner, onClose }: Omit<Props, 'token'>) {
  const create = useCreate(accountId);
  const made = create.data;
  return (
    <Dialog
      opened={opened}
      onClose={onClose}
      title={made ? made.name : 'New API token'}
      size="xl"
      withCloseButton={!made}
      closeOnEscape={!made}
    >
      <ShownOnceGuard isNeeded={() => create.isPending} />
      {made ? (
        <TokenSecret made={made} onDone={onClose} />
      ) : (
        <NewFields
          owner={owner}
          onSubmit={create.mutate}
          busy={create.isPending}
          problem={create.error}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

type NewProps = {
  owner: Owner;
  onSubmit: (form: Form) => void;
  busy: boolean;
  problem: unknown;
  onCancel: () => void;
};

/** What is typed ends with the dialog. */
function NewFields({ onSubmit, ...props }: NewProps) {
  const [form, setForm] = useState<Form>(EMPTY_FORM);
  return (
    <TokenFields
      form={form}
      onChange={setForm}
      submit="Create token"
      onSubmit={() => onSubmit(form)}
      {...props}
    />
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

const versionOf = (token: Token) => ({ values: formOf(token), etag: `"${token.version}"` });

/** Sends what differs from the token that the form started from. */
function useNarrowing(token: Token) {
  const queryClient = useQueryClient();
  const { utc } = usePreferences();
  const { id } = token;
  return useVersionedForm<Form>({
    record: versionOf(token),
    save: async (form, etag, started) => {
      const params = { path: { id }, header: { 'If-Match': etag } };
      const body = toChange(form, started, new Date(serverNow()), utc);
      try {
        return versionOf(await answer(api.PUT('/api/auth/tokens/{id}', { params, body })));
      } finally {
        void queryClient.invalidateQueries({ queryKey: TOKENS_KEY });
      }
    },
    readAgain: async () => versionOf(await queryClient.query({ ...tokenQuery(id), staleTime: 0 })),
  });
}

type NarrowProps = Omit<Props, 'token' | 'accountId'> & { token: Token };

function NarrowDialog({ opened, token, owner, onClose }: NarrowProps) {
  const form = useNarrowing(token);
  // The dialog is called what the token was called when it was opened.
  const [title] = useState(`Rename or narrow ${token.name}`);
  const finish = (saving: Saving) => {
    if (saving === 'saved') onClose();
  };
  return (
    <>
      <Dialog
        opened={opened && form.conflict === undefined}
        onClose={onClose}
        title={title}
        size="xl"
      >
        <TokenFields
          form={form.values}
          onChange={form.setValues}
          token={token}
          owner={owner}
          submit="Save"
          onSubmit={() => void form.submit().then(finish)}
          busy={form.isBusy}
          problem={form.problem}
          onCancel={onClose}
        />
      </Dialog>
      <FormConflict
        form={form}
        title={`${token.name} has changed in the meantime`}
        onSaving={finish}
      />
    </>
  );
}
