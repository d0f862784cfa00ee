import { Anchor, Button, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type SubmitEvent } from 'react';
import { answer, api, toProblem, type Schemas } from '../api.ts';
import { CardPage } from './CardPage.tsx';
import { forgetOneTimePassword, typedOneTimePassword } from './oneTimePassword.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { signOut } from './tokens.ts';

/** A one-time password must be changed before anything else. */
export default function ChangePasswordPage() {
  return (
    <CardPage title="Choose a password">
      <Text size="sm">You signed in with a one-time password. Replace it to continue.</Text>
      <Form />
      <Anchor component="button" type="button" size="xs" onClick={() => void signOut()}>
        Sign out
      </Anchor>
    </CardPage>
  );
}

function useChange() {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas['PasswordChange']) =>
      answer(api.POST('/api/auth/password', { body })),
    onSuccess: () => {
      forgetOneTimePassword();
      return queryClient.invalidateQueries({ queryKey: ['session'] });
    },
  });
}

function Form() {
  const typed = typedOneTimePassword();
  const [current, setCurrent] = useState(typed ?? '');
  const [next, setNext] = useState('');
  const [repeated, setRepeated] = useState('');
  const change = useChange();
  const problem = change.error ? toProblem(change.error) : undefined;
  const errorOf = (pointer: string) =>
    problem?.errors
      .filter((error) => error.pointer === pointer)
      .map(({ detail }) => detail)
      .join('; ');
  const differs = repeated !== '' && repeated !== next;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (next === repeated) change.mutate({ currentPassword: current, newPassword: next });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {typed === undefined && (
          <PasswordInput
            label="One-time password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
            error={errorOf('/currentPassword')}
          />
        )}
        <PasswordInput
          label="New password"
          description="12 characters or more"
          autoComplete="new-password"
          autoFocus
          required
          withAsterisk={false}
          value={next}
          onChange={(event) => setNext(event.currentTarget.value)}
          error={errorOf('/newPassword')}
        />
        <PasswordInput
          label="New password again"
          autoComplete="new-password"
          required
          withAsterisk={false}
          value={repeated}
          onChange={(event) => setRepeated(event.currentTarget.value)}
          error={differs && 'The two passwords differ'}
        />
        {problem?.errors.length === 0 && <ProblemNote problem={problem} />}
        <Button type="submit" size="sm" loading={change.isPending} disabled={differs}>
          Change the password
        </Button>
      </Stack>
    </form>
  );
}
