import { TextInput, type TextInputProps } from '@mantine/core';
import { useState } from 'react';
import { fromLocalInput, toLocalInput, zoneName } from './localInput.ts';
import { usePreferences } from './preferences.tsx';

type Props = Omit<TextInputProps, 'type' | 'value' | 'onChange' | 'step'> & {
  value: string | null;
  onChange: (value: string | null) => void;
  withSeconds?: boolean;
};

/**
 * A field for a time, in the zone of the times that are shown. The text stays as it is typed: while a year is
 * typed, it is a time centuries ago, when zones had other offsets.
 */
export function TimeField({ value, onChange, withSeconds = false, description, ...rest }: Props) {
  const { utc } = usePreferences();
  const textOf = () => toLocalInput(value, utc, withSeconds);
  const [typed, setTyped] = useState({ text: textOf(), value, utc });
  if (typed.value !== value || typed.utc !== utc) setTyped({ text: textOf(), value, utc });
  return (
    <TextInput
      {...rest}
      type="datetime-local"
      {...(withSeconds && { step: 1 })}
      description={
        <>
          {description} In {zoneName(utc)}.
        </>
      }
      value={typed.text}
      onChange={({ currentTarget: { value: text } }) => {
        const next = fromLocalInput(text, utc);
        setTyped({ text, value: next, utc });
        onChange(next);
      }}
    />
  );
}
