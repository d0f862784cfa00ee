import { Anchor, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { SignInForm } from './SignInForm.tsx';
import { sessionQueries } from './session.ts';
import { leaveSession } from './tokens.ts';
import { Dialog } from '../../parts/Dialog.tsx';

/**
 * Lies over the page of an expired session. The page stays as it is, with everything typed; what it
 * was about to send waits. A login at a provider opens a window of its own.
 */
export default function SignInOverlay() {
  const account = useQueryClient().getQueryData<{ user: { username: string } }>(
    sessionQueries.account.queryKey,
  );
  return (
    <Dialog
      opened
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      title="Your session has expired"
    >
      <Stack gap="md">
        <Text size="sm">Sign in to continue. Nothing on the page is lost.</Text>
        <SignInForm
          returnTo="/"
          failureTo="/sign-in"
          username={account?.user.username ?? ''}
          onProvider={({ id }) =>
            void window.open(`/sign-in?window=${encodeURIComponent(id)}`, '_blank', 'popup')
          }
        />
        <Anchor component="button" type="button" size="xs" onClick={leaveSession}>
          Leave this page and sign in as another user
        </Anchor>
      </Stack>
    </Dialog>
  );
}
