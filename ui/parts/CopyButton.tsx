import { ActionIcon, Button, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import { copyText } from './clipboard.ts';
import { Icon } from './icons.tsx';

type Props = {
  /** The text, or what makes it when it is wanted. */
  value: string | (() => string);
  /** Says what is copied: `Copy request id`. */
  label?: string;
  /** Shows the label beside the icon. */
  withText?: boolean;
};

const SHOWN_MS = 2_000;

/** Copies a text, and says whether that worked. */
export function CopyButton({ value, label = 'Copy', withText = false }: Props) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>();
  useEffect(() => {
    if (!outcome) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = () =>
    void copyText(typeof value === 'string' ? value : value()).then((isCopied) =>
      setOutcome(isCopied ? 'copied' : 'failed'),
    );
  const text = outcome === 'copied' ? 'Copied' : outcome === 'failed' ? 'Could not copy' : label;
  const icon = <Icon name={outcome === 'copied' ? 'check' : 'copy'} size={14} />;
  if (withText)
    return (
      <Button variant="default" leftSection={icon} onClick={copy} aria-live="polite">
        {text}
      </Button>
    );
  return (
    <Tooltip label={text}>
      <ActionIcon size={24} onClick={copy} aria-label={text} aria-live="polite">
        {icon}
      </ActionIcon>
    </Tooltip>
  );
}
