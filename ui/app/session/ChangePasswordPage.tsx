import { Anchor, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { CardPage } from './CardPage.tsx';
import { forgetOneTimePassword, typedOneTimePassword } from './oneTimePassword.ts';
import { PasswordForm } from './PasswordForm.tsx';
import { signOut } from './tokens.ts';

/** A one-time password must be changed before anything else. */
export default function ChangePasswordPage() {
  const queryClient = useQueryClient();
  const changed = () => {
    forgetOneTimePassword();
    void queryClient.invalidateQueries({ queryKey: ['session'] });
  };
  const leave = useMutation({ mutationFn: () => signOut(), onSuccess: forgetOneTimePassword });
  return (
    <CardPage title="Choose a password">
      <Text size="sm">You signed in with a one-time password. Replace it to continue.</Text>
      <PasswordForm label="One-time password" known={typedOneTimePassword()} onChanged={changed} />
      <Anchor component="button" type="button" size="xs" onClick={() => leave.mutate()}>
        Sign out
      </Anchor>
      <RefusedNote problem={leave.error} />
    </CardPage>
  );
}
