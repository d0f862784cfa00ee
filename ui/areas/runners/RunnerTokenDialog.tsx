import { Button, Select, TagsInput, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { consoleSettings } from '../../app/settings.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import formClasses from '../../parts/form/Form.module.css';
import { problemFields } from '../../parts/problems.ts';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { ShownOnce, ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { runnerCommand, TOKEN_FILE } from './poolText.ts';
import classes from './Runners.module.css';
import { NEW_ACCOUNT, useRunnerToken, type TokenDraft } from './useRunnerToken.ts';

type Props = {
  pool: string;
  /** The user can be the owner of a new account: behind a gateway there is none. */
  mayOwn: boolean;
  onClose: () => void;
};

/** Makes the token of a runner; it is shown once, with the command that starts the runner. */
export function RunnerTokenDialog({ pool, mayOwn, onClose }: Props) {
  const { made, create, busy, problem } = useRunnerToken(pool);
  const { data: settings } = useQuery(consoleSettings);
  const command = runnerCommand({
    origin: settings?.origin ?? location.origin,
    pool,
    namespace: settings?.temporalUi?.namespace,
  });
  return (
    <Dialog
      opened
      onClose={onClose}
      title={made ? `Token ${made.name}` : `New runner token for the pool ${pool}`}
      size="xl"
      withCloseButton={!made}
      closeOnEscape={!made}
    >
      <ShownOnceGuard isNeeded={() => busy} />
      {made ? (
        <ShownOnce
          token={made.token}
          onDone={onClose}
          use={{
            title: 'Then start the runner, as a user of its own, in the folder of Holdfast:',
            text: command,
            copy: 'Copy command',
          }}
        >
          <p className={formClasses.text}>
            Write it to <code>{TOKEN_FILE}</code>, readable by the user of the runner only. Replace{' '}
            <code>temporal:7233</code> by the address of Temporal, as the runner reaches it, and add
            the other settings of Temporal that the API has, such as those of TLS.
          </p>
        </ShownOnce>
      ) : (
        <TokenForm
          pool={pool}
          mayOwn={mayOwn}
          onSubmit={create}
          busy={busy}
          problem={problem}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

const newDraft = (pool: string, mayOwn: boolean): TokenDraft => ({
  account: mayOwn ? NEW_ACCOUNT : null,
  accountName: `runner-${pool}`,
  name: `runner-${pool}`,
  days: '90',
  networks: [],
});

type FormProps = Omit<Props, 'onClose'> & {
  onSubmit: (draft: TokenDraft) => void;
  busy: boolean;
  problem: unknown;
  onCancel: () => void;
};

const EXPIRIES = [
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

function TokenForm({ pool, mayOwn, onSubmit, busy, problem, onCancel }: FormProps) {
  const [draft, setDraft] = useState(() => newDraft(pool, mayOwn));
  useBusyDialog(busy);
  const change = (fields: Partial<TokenDraft>) => setDraft((old) => ({ ...old, ...fields }));
  const { errors } = problemFields(problem);
  const errorOf = (field: string): string | undefined =>
    errors.find(({ pointer }) => pointer === field || pointer.startsWith(`${field}/`))?.detail;
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (draft.account !== null && !busy) onSubmit(draft);
      }}
    >
      <p className={formClasses.text}>
        The token takes jobs of the pool and can do nothing else. It belongs to a service account,
        whose owner is responsible for it.
      </p>
      <RefusedNote problem={problem} />
      <AccountFields draft={draft} onChange={change} mayOwn={mayOwn} />
      <div className={classes.columns}>
        <TextInput
          label="Name of the token"
          required
          maxLength={255}
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
        <Select
          label="Expires"
          data={EXPIRIES}
          value={draft.days}
          onChange={(days) => days !== null && change({ days })}
          allowDeselect={false}
          error={errorOf('/expiresAt')}
        />
      </div>
      <TagsInput
        label="Networks"
        description="Addresses of the runners, as CIDRs. Empty: all"
        placeholder={draft.networks.length === 0 ? '10.20.0.0/16' : ''}
        size="xs"
        splitChars={[',', ' ', ';']}
        acceptValueOnBlur
        value={draft.networks}
        onChange={(networks) => change({ networks })}
        error={errorOf('/allowedNetworks')}
      />
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onCancel} disabled={busy}>
          Back
        </Button>
        <Button type="submit" loading={busy} disabled={draft.account === null}>
          Create token
        </Button>
      </div>
    </form>
  );
}

const PAUSE_MS = 200;
const FOUND = 50;
const SHORTEST_SEARCH = 3;

type AccountProps = {
  draft: TokenDraft;
  onChange: (fields: Partial<TokenDraft>) => void;
  mayOwn: boolean;
};

/** Who the token is for. */
function AccountFields(props: AccountProps) {
  const { draft, onChange } = props;
  return (
    <div className={classes.columns}>
      <AccountField {...props} />
      {draft.account === NEW_ACCOUNT && (
        <TextInput
          label="Name of the account"
          required
          value={draft.accountName}
          onChange={(event) => onChange({ accountName: event.currentTarget.value })}
        />
      )}
    </div>
  );
}

/** A service account: a new one, or one that is found by its name. */
function AccountField({ draft, onChange, mayOwn }: AccountProps) {
  const [text, setText] = useState('');
  const [q] = useDebouncedValue(text.trim(), PAUSE_MS);
  const isSearch = q.length >= SHORTEST_SEARCH && q !== 'A new account';
  const found = useQuery({
    queryKey: ['runners', 'accounts', isSearch ? q : ''],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/service-accounts', {
          params: { query: { enabled: true, limit: FOUND, ...(isSearch && { q }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const accounts = (found.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }));
  const own = mayOwn ? [{ value: NEW_ACCOUNT, label: 'A new account' }] : [];
  return (
    <Select
      label="Service account"
      searchable
      data={[...own, ...accounts]}
      value={draft.account}
      onChange={(account) => account !== null && onChange({ account })}
      onSearchChange={setText}
      allowDeselect={false}
      nothingFoundMessage="Nothing found"
      placeholder="Search by name"
      error={found.error ? problemFields(found.error).detail : undefined}
    />
  );
}
