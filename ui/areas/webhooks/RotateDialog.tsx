import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { serverNow } from '../../parts/clock.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import formClasses from '../../parts/form/Form.module.css';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { problemFields } from '../../parts/problems.ts';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { Time } from '../../parts/Time.tsx';
import { useStarted } from '../../parts/versioned/useStarted.ts';
import { SecretField } from './SecretField.tsx';
import { ShownSecret } from './ShownSecret.tsx';
import { useSentSecret } from './useSentSecret.ts';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';
import classes from './Webhooks.module.css';

type Props = { webhook: WebhookDetail; opened: boolean; onClose: () => void };

/** Replaces the secret of a webhook, and shows the new one once. */
export function RotateDialog({ webhook, opened, onClose }: Props) {
  const [isShown, setShown] = useState(false);
  const close = () => {
    setShown(false);
    onClose();
  };
  return (
    <Dialog
      opened={opened}
      onClose={close}
      title={isShown ? 'The new secret' : `Rotate the secret of ${nameOf(webhook)}`}
      size="xl"
      withCloseButton={!isShown}
      closeOnEscape={!isShown}
    >
      <Rotation webhook={webhook} onMade={() => setShown(true)} onClose={close} />
    </Dialog>
  );
}

type RotationProps = { webhook: WebhookDetail; onMade: () => void; onClose: () => void };

/** The secret is in this component only. */
function Rotation({ webhook, onMade, onClose }: RotationProps) {
  const { started, watch } = useStarted(webhook);
  const { id, version, previousSecretUntil } = started;
  const client = useQueryClient();
  const [secret, setSecret] = useState('');
  const { made, send, busy, problem } = useSentSecret((body: { secret?: string }, key) => {
    const params = { path: { id }, header: { ...key, 'If-Match': `"${version}"` } };
    return watch(answer(api.POST('/api/webhooks/{id}/rotate-secret', { params, body })));
  });
  useBusyDialog(busy);
  const rotate = async () => {
    const isDone = await send(secret === '' ? {} : { secret });
    await client.invalidateQueries({ queryKey: webhookKey(id) });
    if (!isDone) return;
    setSecret('');
    onMade();
  };
  if (made)
    return (
      <ShownSecret made={made} onDone={onClose}>
        <p className={formClasses.text}>
          The former secret signs, too, until{' '}
          <Time value={made.previousSecretUntil} format="full" />. Set the new one at your receivers
          before then.
        </p>
      </ShownSecret>
    );
  const { errors } = problemFields(problem);
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        void rotate();
      }}
    >
      <ShownOnceGuard isNeeded={() => busy} />
      <p className={formClasses.text}>
        For 24 hours, messages are signed with the new secret and the present one, so receivers keep
        working while you replace it.
      </p>
      <Overlap until={previousSecretUntil} />
      <RefusedNote problem={problem} shown={['/secret']} />
      <SecretField value={secret} onChange={setSecret} error={errorAt(errors, '/secret')} />
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onClose} disabled={busy}>
          Back
        </Button>
        <ReasonButton type="submit" icon="key" loading={busy}>
          Rotate secret
        </ReasonButton>
      </div>
    </form>
  );
}

/** Only the last two secrets sign: another rotation ends the overlap of the one before. */
function Overlap({ until }: { until: string | null }) {
  const [now] = useState(serverNow);
  if (until === null || Date.parse(until) <= now) return null;
  return (
    <p className={classes.notice} data-tone="warning" role="note">
      The secret before the present one still signs, until <Time value={until} />. It stops
      immediately: receivers that do not have the present one yet will refuse all messages.
    </p>
  );
}
