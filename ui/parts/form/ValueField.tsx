import { PasswordInput, Switch, Textarea } from '@mantine/core';
import { useState } from 'react';
import classes from './ValueField.module.css';

type Props = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  error?: string | undefined;
  autoFocus?: boolean;
  required?: boolean;
  description?: string | undefined;
};

const MAX_LENGTH = 32_768;

const isLong = (text: string): boolean => /[\r\n]/.test(text);

/** The value of a secret: hidden while it is typed, also one with several lines, such as a private key. */
export function ValueField({ label, value, onChange, error, ...options }: Props) {
  const { autoFocus = false, required = true, description } = options;
  const [hasLines, setLines] = useState(false);
  const shared = {
    label,
    value,
    error,
    required,
    description,
    maxLength: MAX_LENGTH,
    spellCheck: false,
    ...(autoFocus && { 'data-autofocus': true }),
  };
  return (
    <div className={classes.value}>
      {hasLines ? (
        <Textarea
          {...shared}
          autoComplete="off"
          rows={8}
          classNames={{ input: classes.hidden ?? '' }}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <PasswordInput
          {...shared}
          // A browser that fills in the password of its user would replace the value.
          autoComplete="new-password"
          onChange={(event) => onChange(event.currentTarget.value)}
          onPaste={(event) => {
            const text = event.clipboardData.getData('text');
            if (!isLong(text)) return;
            // The field of one line would drop the ends of the lines.
            event.preventDefault();
            setLines(true);
            onChange(text);
          }}
        />
      )}
      <Switch
        label="The value has several lines"
        checked={hasLines}
        disabled={hasLines && isLong(value)}
        onChange={(event) => setLines(event.currentTarget.checked)}
      />
    </div>
  );
}
