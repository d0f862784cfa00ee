import { Alert, Anchor, Code, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { CardPage } from '../../app/session/CardPage.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Problem } from '../../app/problem.ts';
import { Starting, Unreachable } from '../../app/shell/Interruptions.tsx';
import { consoleSettings } from '../../app/settings.ts';
import { providerKinds, SignInForm } from '../../app/session/SignInForm.tsx';
import { useSessionState } from '../../app/session/state.ts';
import { findSession, startSso } from '../../app/session/tokens.ts';
import type { SignInSearch } from './signInSearch.ts';

const route = getRouteApi('/sign-in');

/** Signs users in, and leads them to the page that they wanted to open. */
export function SignInPage() {
  const search: SignInSearch = route.useSearch();
  const state = useSessionState();
  useLeave(search, state.kind);
  if (state.kind === 'unreachable')
    return <Unreachable detail={state.detail} onRetry={() => void findSession()} />;
  if (state.kind === 'signedOut') return <Form search={search} />;
  return state.kind === 'signedIn' && search.window === 'done' ? <WindowDone /> : <Starting />;
}

/** Where to go on as soon as there is a session. */
function useLeave({ to = '/', window: purpose }: SignInSearch, kind: string): void {
  const { history } = useRouter();
  useEffect(() => {
    if (kind !== 'signedIn' && kind !== 'gateway') return;
    if (purpose === 'done') window.close();
    else history.replace(to);
  }, [kind, purpose, to, history]);
}

function WindowDone() {
  return (
    <CardPage title="Signed in">
      <Text role="status">You can close this window.</Text>
    </CardPage>
  );
}

function Form({ search }: { search: SignInSearch }) {
  const { to = '/' } = search;
  const query = new URLSearchParams({ to }).toString();
  const isStarting = useProviderOfWindow(search);
  if (isStarting) return <Starting />;
  return (
    <CardPage title="Sign in" heading="Sign in to Holdfast">
      <OtherOrigin />
      {search.error !== undefined && <Failure {...search} />}
      <SignInForm returnTo={to} failureTo={`/sign-in?${query}`} />
    </CardPage>
  );
}

const REASONS: Readonly<Record<string, string>> = {
  login_failed: 'The identity provider did not confirm who you are. Start again.',
  provider_unavailable: 'The identity provider is not available. Try again later.',
  too_many_requests: 'There were too many attempts. Try again later.',
};

/** Why a login at a provider failed. */
function Failure({ error = '', requestId }: SignInSearch) {
  const detail = REASONS[error] ?? 'The login could not be completed.';
  const fields = { status: 0, title: 'Signing in failed', detail, code: error, requestId };
  return <ProblemNote problem={new Problem(fields)} />;
}

/** The cookie of a session belongs to one origin: under another one, a session would soon end. */
function OtherOrigin() {
  const { data } = useQuery(consoleSettings);
  if (data === undefined || data.origin === location.origin) return null;
  return (
    <Alert color="yellow" title="Open the console at its own address">
      This server expects browsers at <Anchor href={data.origin}>{data.origin}</Anchor>. Signing in
      here does not last. <Code>HOLDFAST_PUBLIC_URL</Code> sets the address.
    </Alert>
  );
}

/** In a window that was opened for a provider, its login starts without a click. */
function useProviderOfWindow({ window: providerId, error }: SignInSearch): boolean {
  const { data: providers } = useQuery(providerKinds);
  const provider = providers?.items.find(({ id }) => id === providerId);
  const isWanted = provider !== undefined && error === undefined;
  useEffect(() => {
    if (!isWanted) return;
    const { kind, id } = provider;
    const paths = { returnTo: '/sign-in?window=done', failureTo: `/sign-in?window=${id}` };
    if (kind === 'oidc' || kind === 'saml')
      void startSso(kind, { providerId: id, ...paths }).then((url) => location.replace(url));
  }, [isWanted, provider]);
  return isWanted;
}
