import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { Activity, useEffect, useMemo, useState } from 'react';
import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { PermissionsProvider } from '../../parts/permissions.tsx';
import { queryClient } from '../queryClient.ts';
import { Problem } from '../problem.ts';
import { sessionOf, sessionQueries } from '../session/session.ts';
import { useSessionState } from '../session/state.ts';
import { findSession } from '../session/tokens.ts';
import { SessionContext } from '../session/useSession.ts';
import { isMissingPart, reloadIfOutdated } from '../reload.ts';
import { Starting, Unreachable } from './Interruptions.tsx';
import { lazyPart, type FailedProps } from './lazyPart.tsx';
import { SignInMissing } from './SignInMissing.tsx';
import { Shell } from './Shell.tsx';

const loadOverlay = () => import('../session/SignInOverlay.tsx');
const SignInOverlay = lazyPart(loadOverlay, { Failed: SignInMissing });
const wholePage = { waiting: <Starting />, Failed: MissingPage };
const OtherUser = lazyPart(() => import('../session/OtherUserPage.tsx'), wholePage);
const ChangePassword = lazyPart(() => import('../session/ChangePasswordPage.tsx'), wholePage);

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
          <SignInOverlay />
        </>
      );
    case 'otherUser':
      return <OtherUser />;
  }
}

/** Instead of a page of the session that cannot be loaded: there is nothing on screen that could be lost. */
function MissingPage({ error, retry }: FailedProps) {
  useEffect(() => {
    if (isMissingPart(error)) void reloadIfOutdated();
  }, [error]);
  return <Unreachable detail={errorMessage(error)} onRetry={retry} />;
}

const PRELOAD_MS = 1_500;

/** Loads what signs in again while the session lasts: when it has expired, the server may have another console. */
function usePreloadedOverlay(isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return undefined;
    const timer = setTimeout(() => void loadOverlay().catch(() => undefined), PRELOAD_MS);
    return () => clearTimeout(timer);
  }, [isNeeded]);
}

/** Leads to the sign-in page, and from there back. What the user has read is forgotten. */
function ToSignIn() {
  const { latestLocation, navigate } = useRouter();
  useEffect(() => {
    queryClient.clear();
    const { href } = latestLocation;
    void navigate({ to: '/sign-in', search: href === '/' ? {} : { to: href }, replace: true });
    // Once: the navigation changes the location.
    // oxlint-disable-next-line react/exhaustive-deps
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
  const [shown, setShown] = useState<typeof session>();
  // Who must change the password may do nothing else: what was read of rights until then does not count.
  const isOfNow = shown !== undefined || !summary.isFetching;
  if (!mustChangePassword && isOfNow && session && session !== shown) setShown(session);
  usePreloadedOverlay(shown !== undefined && !isGateway);
  if (mustChangePassword || shown)
    return (
      <>
        {/* Who signs in again with a one-time password finds what was typed after the change. */}
        <Activity mode={mustChangePassword ? 'hidden' : 'visible'}>
          {shown && (
            <SessionContext value={shown}>
              <PermissionsProvider value={shown}>
                <Shell />
              </PermissionsProvider>
            </SessionContext>
          )}
        </Activity>
        {mustChangePassword && <ChangePassword />}
      </>
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
