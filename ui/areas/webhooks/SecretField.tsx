import { PasswordInput } from '@mantine/core';

type Props = { value: string; onChange: (value: string) => void; error: string | undefined };

/** A secret of one's own instead of a random one. */
export function SecretField({ value, onChange, error }: Props) {
  return (
    <PasswordInput
      label="Secret"
      description="Empty: 32 random bytes (recommended). Or a text of 8 to 256 characters that your receiver already has."
      placeholder="A random one"
      maxLength={256}
      spellCheck={false}
      // A browser that fills in the password of its user would replace the secret.
      autoComplete="new-password"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
    />
  );
}
