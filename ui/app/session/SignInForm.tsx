import {
  Alert,
  Anchor,
  Button,
  Code,
  PasswordInput,
  Select,
  Stack,
  TextInput,
} from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState, type SubmitEvent } from 'react';
import type { Schemas } from '../api.ts';
import { rememberOneTimePassword } from './oneTimePassword.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { consoleSettings } from '../settings.ts';
import { send } from './requests.ts';
import { signIn, startSso } from './tokens.ts';

type Provider = Schemas['EnabledProvider'];

/** Where users can sign in. */
export const providerKinds = {
  queryKey: ['session', 'providers'],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    send<Schemas['EnabledProviderList']>('/api/auth/providers/enabled', { signal }),
  staleTime: 60_000,
} as const;

type Props = {
  /** Path to open after a login at a provider. */
  returnTo: string;
  /** Path to open if such a login fails. */
  failureTo: string;
  /** The user whose session has expired. */
  username?: string | undefined;
  /** Starts a login at a provider in another way than in this tab. */
  onProvider?: (provider: Provider) => void;
};

export const isSso = ({ kind }: Provider): boolean => kind === 'oidc' || kind === 'saml';

/** Starts a login at a provider, in this tab. */
export const useSsoStart = (paths: { returnTo: string; failureTo: string }) =>
  useMutation({
    mutationFn: ({ kind, id }: Provider) =>
      startSso(kind as 'oidc' | 'saml', { providerId: id, ...paths }),
    onSuccess: (url) => location.assign(url),
  });

/** Where users sign in; at another address than that of the server it leads there, since no session would last. */
export function SignInForm(props: Props) {
  const { data, isPending } = useQuery(consoleSettings);
  if (isPending) return null;
  const isElsewhere = data !== undefined && data.origin !== location.origin;
  // The development server is in front of the API, and sends its origin.
  return isElsewhere && !import.meta.env.DEV ? (
    <OtherOrigin origin={data.origin} />
  ) : (
    <Providers {...props} />
  );
}

const OtherOrigin = ({ origin }: { origin: string }) => (
  <Alert color="yellow" title="Open the console at its own address">
    Sessions of this server belong to{' '}
    <Anchor c="inherit" underline="always" href={`${origin}${location.pathname}${location.search}`}>
      {origin}
    </Anchor>
    , so nobody can sign in here. <Code>HOLDFAST_PUBLIC_URL</Code> sets the address.
  </Alert>
);

/** Providers first; the password is folded if there are any. */
function Providers({ returnTo, failureTo, username, onProvider }: Props) {
  const { data, error, refetch } = useQuery(providerKinds);
  const [wantsPassword, setWantsPassword] = useState(false);
  const sso = useSsoStart({ returnTo, failureTo });
  if (data === undefined)
    return error === null ? null : <ProblemNote problem={error} retry={() => void refetch()} />;
  const providers = data.items.filter(isSso);
  const accounts = data.items.filter((provider) => !isSso(provider));
  const showsPassword = providers.length === 0 || wantsPassword;
  return (
    <Stack gap="sm">
      {providers.map((provider) => (
        <Button
          key={provider.id}
          size="sm"
          fullWidth
          loading={sso.isPending && sso.variables.id === provider.id}
          onClick={() => (onProvider ?? sso.mutate)(provider)}
        >
          Continue with {provider.name}
        </Button>
      ))}
      <RefusedNote problem={sso.error} />
      {accounts.length > 0 &&
        (showsPassword ? (
          <PasswordForm accounts={accounts} username={username} />
        ) : (
          <Anchor component="button" type="button" size="sm" onClick={() => setWantsPassword(true)}>
            Sign in with a password
          </Anchor>
        ))}
    </Stack>
  );
}

function useLogin(account: Provider | undefined) {
  return useMutation({
    // The cache forgets what was sent and answered with the page.
    gcTime: 0,
    mutationFn: async (credentials: { username: string; password: string }) => {
      const user = await (account?.kind === 'ldap'
        ? signIn('ldap', { ...credentials, providerId: account.id })
        : signIn('local', credentials));
      if (user.mustChangePassword) rememberOneTimePassword(credentials.password);
    },
  });
}

function PasswordForm({
  accounts,
  username,
}: {
  accounts: Provider[];
  username?: string | undefined;
}) {
  const [name, setName] = useState(username ?? '');
  const [password, setPassword] = useState('');
  const [providerId, setProviderId] = useState(accounts[0]?.id ?? 'local');
  const login = useLogin(accounts.find(({ id }) => id === providerId));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    login.mutate({ username: name, password });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {accounts.length > 1 && (
          <Select
            label="Account"
            data={accounts.map((account) => ({ value: account.id, label: account.name }))}
            value={providerId}
            onChange={(id) => id !== null && setProviderId(id)}
            allowDeselect={false}
          />
        )}
        <TextInput
          label="User name"
          autoComplete="username"
          autoFocus={username === undefined}
          autoCapitalize="none"
          spellCheck={false}
          required
          withAsterisk={false}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          autoFocus={username !== undefined}
          required
          withAsterisk={false}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <RefusedNote problem={login.error} />
        <Button type="submit" size="sm" loading={login.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
