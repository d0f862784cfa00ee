import type { ReactNode } from 'react';
import formClasses from '../../parts/form/Form.module.css';
import { MASK } from '../../parts/mask.ts';
import { ShownOnce } from '../../parts/ShownOnce.tsx';
import { ReceiverCode } from '../../parts/webhooks/ReceiverCode.tsx';

const WHAT = {
  noun: 'secret',
  stored: 'it is stored encrypted, and no response contains it',
  lost: 'The secret is set, but the answer with it was lost. Rotate it to get another one.',
};

export type NewSecret = {
  secret: string;
  warnings?: readonly { code: string; message: string }[] | undefined;
};

type Props = { made: NewSecret; onDone: () => void; children?: ReactNode };

/** The secret of a webhook, once, with how a receiver uses it. */
export function ShownSecret({ made: { secret, warnings = [] }, onDone, children }: Props) {
  return (
    <ShownOnce token={secret === MASK ? null : secret} what={WHAT} onDone={onDone}>
      {warnings.map(({ code, message }) => (
        <p key={code} className={formClasses.text} role="note">
          The secret {message}.
        </p>
      ))}
      {children}
      <details>
        <summary className={formClasses.text}>A receiver that verifies the signature</summary>
        <ReceiverCode />
      </details>
    </ShownOnce>
  );
}
