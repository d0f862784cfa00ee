import { TextInput } from '@mantine/core';

type Props = {
  value: string;
  onChange: (name: string) => void;
  error: string | undefined;
};

/** The name of a provider. */
export function NameField({ value, onChange, error }: Props) {
  return (
    <TextInput
      label="Name"
      description="Shown on the sign-in page"
      required
      maxLength={255}
      autoComplete="off"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
    />
  );
}
