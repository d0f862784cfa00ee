import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../api.ts';
import { consoleSettings } from '../settings.ts';
import { ShownOnce } from '../../parts/ShownOnce.tsx';
import { exampleOf } from './tokenText.ts';

type Props = {
  made: Schemas['TokenWithSecret'];
  onDone: () => void;
  children?: ReactNode;
};

/** The text of a token of a user, with a first request. */
export function TokenSecret({ made: { token }, onDone, children }: Props) {
  const { data: settings } = useQuery(consoleSettings);
  const use = {
    title: 'A first request, with the token in the variable TOKEN:',
    text: exampleOf(settings?.origin ?? location.origin),
    copy: 'Copy request',
  };
  return (
    <ShownOnce token={token} use={use} onDone={onDone}>
      {children}
    </ShownOnce>
  );
}
