import { Button, PasswordInput, Stack, type PasswordInputProps } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type SubmitEvent } from 'react';
import { useBusyDialog } from '../../parts/Dialog.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { answer, api, toProblem, type Schemas } from '../api.ts';

type Props = {
  /** What the present password is called. */
  label: string;
  /** The present password, if the user has just typed it. */
  known?: string | undefined;
  onChanged: () => void;
};

const SHOWN = ['/currentPassword', '/newPassword'];

type FieldProps = {
  label: string;
  value: string;
  onValue: (value: string) => void;
} & Pick<PasswordInputProps, 'description' | 'autoComplete' | 'autoFocus' | 'error'>;

const Field = ({ onValue, ...props }: FieldProps) => (
  <PasswordInput
    {...props}
    required
    withAsterisk={false}
    onChange={(event) => onValue(event.currentTarget.value)}
  />
);

/** Changes the password. The service says which rules a new one breaks. */
export function PasswordForm({ label, known, onChanged }: Props) {
  const [current, setCurrent] = useState(known ?? '');
  const [next, setNext] = useState('');
  const [repeated, setRepeated] = useState('');
  const change = useMutation({
    // The cache forgets what was sent and answered with the page.
    gcTime: 0,
    mutationFn: (body: Schemas['PasswordChange']) =>
      answer(api.POST('/api/auth/password', { body })),
    onSuccess: onChanged,
  });
  useBusyDialog(change.isPending);
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
        {known === undefined && (
          <Field
            label={label}
            autoComplete="current-password"
            autoFocus
            value={current}
            onValue={setCurrent}
            error={errorOf('/currentPassword')}
          />
        )}
        <Field
          label="New password"
          description="12 characters or more"
          autoComplete="new-password"
          autoFocus={known !== undefined}
          value={next}
          onValue={setNext}
          error={errorOf('/newPassword')}
        />
        <Field
          label="New password again"
          autoComplete="new-password"
          value={repeated}
          onValue={setRepeated}
          error={differs && 'The two passwords differ'}
        />
        <RefusedNote problem={problem} shown={SHOWN} />
        <Button type="submit" loading={change.isPending} disabled={differs}>
          Change the password
        </Button>
      </Stack>
    </form>
  );
}
