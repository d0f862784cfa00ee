import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { CopyButton } from '../CopyButton.tsx';
import { RECEIVERS } from './receiverCode.ts';
import classes from './Webhooks.module.css';

const LANGUAGES = RECEIVERS.map(({ language }) => language);

/** A receiver that verifies the signature of what it gets, to copy. */
export function ReceiverCode() {
  const [chosen, setChosen] = useState<string>(LANGUAGES[0] ?? '');
  const receiver = RECEIVERS.find(({ language }) => language === chosen) ?? RECEIVERS[0];
  return (
    <div className={classes.receiver}>
      <p className={classes.text}>
        Messages are signed as{' '}
        <a href="https://www.standardwebhooks.com" target="_blank" rel="noreferrer">
          Standard Webhooks
        </a>{' '}
        says, so its libraries verify them, too. A message may come twice, with the same{' '}
        <code>webhook-id</code>: keep the ids that you have processed.
      </p>
      <div className={classes.tools}>
        <SegmentedControl
          aria-label="Language"
          data={LANGUAGES}
          value={chosen}
          onChange={setChosen}
        />
        <CopyButton value={receiver.code} label={`Copy ${receiver.file}`} withText />
      </div>
      <pre className={classes.code} tabIndex={0} aria-label={receiver.file}>
        {receiver.code}
      </pre>
      <p className={classes.text}>
        Start it with the secret of the webhook: <code>WEBHOOK_SECRET=whsec_… {receiver.run}</code>
      </p>
    </div>
  );
}
