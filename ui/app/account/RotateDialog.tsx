import { Button, Select } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../api.ts';
import { useIdempotencyKeys } from '../idempotency.ts';
import { serverNow } from '../../parts/clock.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { Time } from '../../parts/Time.tsx';
import { useStarted } from '../../parts/versioned/useStarted.ts';
import { TOKENS_KEY } from './tokenQueries.ts';
import { TokenSecret } from './TokenSecret.tsx';
import classes from './Account.module.css';

type Props = { opened: boolean; token: Schemas['Token']; onClose: () => void };

const OVERLAPS = [
  { value: '0', label: 'It ends now' },
  { value: '3600', label: 'An hour' },
  { value: '86400', label: 'A day' },
  { value: '604800', label: 'A week' },
  { value: '2592000', label: '30 days' },
];

/** A repeat after an outage has the same idempotency key: another rotation would end the secret in use. */
function useRotation(token: Schemas['Token']) {
  const queryClient = useQueryClient();
  const keys = useIdempotencyKeys();
  const { started, watch } = useStarted(token);
  const { id, version } = started;
  const rotate = useMutation({
    // The cache forgets what was sent and answered with the page.
    gcTime: 0,
    mutationFn: (overlapSeconds: number) => {
      const body = { overlapSeconds };
      return keys.once({ ...body, version }, (key) => {
        const params = { path: { id }, header: { ...key, 'If-Match': `"${version}"` } };
        return watch(answer(api.POST('/api/auth/tokens/{id}/rotate', { params, body })));
      });
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: TOKENS_KEY }),
  });
  return { rotate, started };
}

/** Replaces the secret of a token. It is shown until the dialog is closed with its button. */
export function RotateDialog({ opened, token, onClose }: Props) {
  const { name } = token;
  const { rotate, started } = useRotation(token);
  const made = rotate.data;
  return (
    <Dialog
      opened={opened}
      onClose={onClose}
      title={made ? `${name} has a new secret` : `Rotate ${name}`}
      size="lg"
      withCloseButton={!made}
      closeOnEscape={!made}
    >
      <ShownOnceGuard isNeeded={() => rotate.isPending} />
      {made ? (
        <TokenSecret made={made} onDone={onClose}>
          {made.previousValidUntil !== null && (
            <p className={classes.text}>
              The former secret is valid until <Time value={made.previousValidUntil} />.
            </p>
          )}
        </TokenSecret>
      ) : (
        <RotateForm
          formerUntil={started.previousValidUntil}
          onSubmit={rotate.mutate}
          busy={rotate.isPending}
          problem={rotate.error}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

type FormProps = {
  /** Until when the secret before the present one is valid. */
  formerUntil: string | null;
  onSubmit: (overlapSeconds: number) => void;
  busy: boolean;
  problem: unknown;
  onCancel: () => void;
};

function RotateForm({ formerUntil, onSubmit, busy, problem, onCancel }: FormProps) {
  const [overlap, setOverlap] = useState('3600');
  useBusyDialog(busy);
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) onSubmit(Number(overlap));
      }}
    >
      <p className={classes.text}>
        The token gets another secret. Its limits and its expiry stay as they are.
      </p>
      <Overlap until={formerUntil} />
      <Select
        label="How long the present secret stays valid"
        description="As long as you need to replace it everywhere; not at all if it has leaked."
        data={OVERLAPS}
        value={overlap}
        onChange={(value) => value !== null && setOverlap(value)}
        allowDeselect={false}
      />
      <RefusedNote problem={problem} />
      <div className={classes.buttons}>
        <Button variant="default" onClick={onCancel} disabled={busy}>
          Back
        </Button>
        <Button type="submit" loading={busy}>
          Rotate
        </Button>
      </div>
    </form>
  );
}

/** Only the last two secrets are valid: another rotation ends the overlap of the one before. */
function Overlap({ until }: { until: string | null }) {
  const [now] = useState(serverNow);
  if (until === null || Date.parse(until) <= now) return null;
  return (
    <p className={classes.warning} role="note">
      The secret before the present one is valid until <Time value={until} />. It ends immediately:
      programs that still use it are refused.
    </p>
  );
}
