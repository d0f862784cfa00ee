import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo } from 'react';
import { PermissionsProvider } from '../../parts/permissions.tsx';
import { queryClient } from '../queryClient.ts';
import { Problem } from '../problem.ts';
import { sessionOf, sessionQueries } from '../session/session.ts';
import { useSessionState } from '../session/state.ts';
import { findSession } from '../session/tokens.ts';
import { SessionContext } from '../session/useSession.ts';
import { Starting, Unreachable } from './Interruptions.tsx';
import { Shell } from './Shell.tsx';

const SignInOverlay = lazy(() => import('../session/SignInOverlay.tsx'));
const OtherUser = lazy(() => import('../session/OtherUserPage.tsx'));
const ChangePassword = lazy(() => import('../session/ChangePasswordPage.tsx'));

/** Shows the pages to users with a session, and leads others to the sign-in page. */
export function Frame() {
  const state = useSessionState();
  switch (state.kind) {
    case 'starting':
      return <Starting />;
    case 'unreachable':
      return <Unreachable detail={state.detail} onRetry={() => void findSession()} />;
    case 'signedOut':
      return <ToSignIn />;
    case 'gateway':
      return <Session isGateway />;
    case 'signedIn':
      return <Session isGateway={false} />;
    case 'expired':
      return (
        <>
          <Session isGateway={false} />
          <Suspense>
            <SignInOverlay />
          </Suspense>
        </>
      );
    case 'otherUser':
      return (
        <Suspense fallback={<Starting />}>
          <OtherUser />
        </Suspense>
      );
  }
}

/** Leads to the sign-in page, and from there back. What the user has read is forgotten. */
function ToSignIn() {
  const { latestLocation, navigate } = useRouter();
  useEffect(() => {
    queryClient.clear();
    const { href } = latestLocation;
    void navigate({ to: '/sign-in', search: href === '/' ? {} : { to: href }, replace: true });
    // Once: the navigation changes the location.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return <Starting />;
}

/** The pages, as soon as it is known who the user is and what they may do. */
function Session({ isGateway }: { isGateway: boolean }) {
  const account = useQuery({ ...sessionQueries.account, enabled: !isGateway });
  const mustChangePassword = account.data?.user.mustChangePassword === true;
  const summary = useQuery({ ...sessionQueries.summary, enabled: !mustChangePassword });
  const session = useMemo(
    () =>
      summary.data && (isGateway || account.data)
        ? sessionOf(summary.data, account.data?.user)
        : undefined,
    [summary.data, account.data, isGateway],
  );
  if (mustChangePassword)
    return (
      <Suspense fallback={<Starting />}>
        <ChangePassword />
      </Suspense>
    );
  if (session)
    return (
      <SessionContext value={session}>
        <PermissionsProvider value={session}>
          <Shell />
        </PermissionsProvider>
      </SessionContext>
    );
  const error = [account.error, summary.error].find(
    (found) => found !== null && !(found instanceof Problem && found.status === 401),
  );
  if (!error) return <Starting />;
  return (
    <Unreachable
      detail={error.message}
      onRetry={() => void queryClient.invalidateQueries({ queryKey: ['session'] })}
    />
  );
}
