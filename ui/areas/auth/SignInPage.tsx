import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { CardPage } from '../../app/session/CardPage.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Problem } from '../../app/problem.ts';
import { Starting, Unreachable } from '../../app/shell/Interruptions.tsx';
import { isSso, providerKinds, SignInForm, useSsoStart } from '../../app/session/SignInForm.tsx';
import { useSessionState } from '../../app/session/state.ts';
import { findSession } from '../../app/session/tokens.ts';
import type { SignInSearch } from './signInSearch.ts';
import { ownValue } from '../../parts/ownValue.ts';

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

/** Where a login at a provider goes on, and where it does if it fails. A window is closed, or tries again. */
const pathsOf = ({ to = '/', window }: SignInSearch) => {
  const failure = new URLSearchParams(window === undefined ? { to } : { window });
  return {
    returnTo: window === undefined ? to : '/sign-in?window=done',
    failureTo: `/sign-in?${failure.toString()}`,
  };
};

function Form({ search }: { search: SignInSearch }) {
  const { isStarting, problem } = useProviderOfWindow(search);
  if (isStarting) return <Starting />;
  return (
    <CardPage title="Sign in" heading="Sign in to Holdfast">
      {search.error !== undefined && <Failure {...search} />}
      {problem && <ProblemNote problem={problem} retry={undefined} />}
      <SignInForm {...pathsOf(search)} />
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
  const detail = ownValue(REASONS, error) ?? 'The login could not be completed.';
  const fields = { status: 0, title: 'Signing in failed', detail, code: error, requestId };
  return <ProblemNote problem={new Problem(fields)} retry={undefined} />;
}

/** In a window that was opened for a provider, its login starts without a click. */
function useProviderOfWindow(search: SignInSearch) {
  const { window: providerId, error } = search;
  const { data: providers } = useQuery(providerKinds);
  const provider = providers?.items.find((each) => each.id === providerId && isSso(each));
  const isWanted = provider !== undefined && error === undefined;
  const { mutate, error: problem } = useSsoStart(pathsOf(search));
  useEffect(() => {
    if (isWanted) mutate(provider);
  }, [isWanted, provider, mutate]);
  return { isStarting: isWanted && problem === null, problem };
}
