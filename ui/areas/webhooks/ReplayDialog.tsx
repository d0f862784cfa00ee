import { Button, NumberInput, SegmentedControl } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { answer, api } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { serverNow } from '../../parts/clock.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import formClasses from '../../parts/form/Form.module.css';
import { formatCount, formatNumberOf } from '../../parts/format.ts';
import { minuteOf } from '../../parts/localInput.ts';
import { TimeField } from '../../parts/TimeField.tsx';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { problemFields, type FieldError } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { replayCountQuery, webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';
import classes from './Webhooks.module.css';
import { typedNumber } from '../../parts/form/typedNumber.ts';

type Props = {
  webhook: WebhookDetail;
  opened: boolean;
  onClose: () => void;
  onNote: (note: ReactNode) => void;
};

const DEBOUNCE_MS = 300;
/** The most events of one replay. */
const MAX_EVENTS = 10_000;

/** Sends past events again, after showing how many that are. */
export function ReplayDialog({ webhook, opened, onClose, onNote }: Props) {
  return (
    <Dialog opened={opened} onClose={onClose} title={`Replay events to ${nameOf(webhook)}`}>
      <ReplayForm webhook={webhook} onClose={onClose} onNote={onNote} />
    </Dialog>
  );
}

/** Where a replay starts, as it is typed. It begins with what the endpoint may have missed. */
function useFrom({ failingSince }: WebhookDetail) {
  const [kind, setKind] = useState<'time' | 'sequence'>('time');
  const [since, setSince] = useState<string | null>(() =>
    minuteOf(failingSince === null ? serverNow() - DAY_MS : Date.parse(failingSince)),
  );
  const [sequence, setSequence] = useState<number | ''>('');
  const from =
    kind === 'time'
      ? since === null
        ? undefined
        : { since }
      : sequence === ''
        ? undefined
        : { afterSequence: sequence };
  return { kind, setKind, since, setSince, sequence, setSequence, from };
}

type From = NonNullable<ReturnType<typeof useFrom>['from']>;

const countedFrom = (from: From | undefined) =>
  from === undefined || from.since !== undefined ? from : { after: from.afterSequence };

function useReplay({ id }: WebhookDetail, onMade: (job: ReactNode) => void) {
  const client = useQueryClient();
  return useCreation({
    send: (body: From, header) =>
      answer(api.POST('/api/webhooks/{id}/replay', { params: { path: { id }, header }, body })),
    onMade: (job) => {
      void client.invalidateQueries({ queryKey: webhookKey(id) });
      onMade(
        <span>
          The job <RecordLink id={job.id} /> queues the deliveries.
        </span>,
      );
    },
  });
}

const SHOWN = ['/since', '/afterSequence'];

function ReplayForm({ webhook, onClose, onNote }: Omit<Props, 'opened'>) {
  const typed = useFrom(webhook);
  const { from } = typed;
  const { create, isBusy, error } = useReplay(webhook, (note) => {
    onNote(note);
    onClose();
  });
  useBusyDialog(isBusy);
  const { errors } = problemFields(error);
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (from) create(from);
      }}
    >
      <p className={formClasses.text}>
        Sends the past events that the webhook subscribes to, also those that were delivered, with
        the same <code>webhook-id</code>: a receiver that keeps the ids recognises them.
      </p>
      <StartFields typed={typed} errors={errors} />
      <Amount webhook={webhook} from={from} />
      <RefusedNote problem={error} shown={SHOWN} />
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Back
        </Button>
        <ReasonButton
          type="submit"
          icon="history"
          loading={isBusy}
          reason={from === undefined ? 'Say where the replay starts.' : undefined}
        >
          Replay
        </ReasonButton>
      </div>
    </form>
  );
}

type StartProps = { typed: ReturnType<typeof useFrom>; errors: readonly FieldError[] };

/** From which event on. */
function StartFields({ typed, errors }: StartProps) {
  return (
    <>
      <SegmentedControl
        aria-label="Where the replay starts"
        data={[
          { value: 'time', label: 'From a time' },
          { value: 'sequence', label: 'After a sequence' },
        ]}
        value={typed.kind}
        onChange={(kind) => typed.setKind(kind === 'sequence' ? 'sequence' : 'time')}
      />
      {typed.kind === 'time' ? (
        <TimeField
          label="From"
          value={typed.since}
          onChange={typed.setSince}
          error={errorAt(errors, '/since')}
        />
      ) : (
        <NumberInput
          label="After the sequence"
          description="The last one that the receiver has processed"
          min={0}
          decimalScale={0}
          value={typed.sequence}
          onChange={(next) => typed.setSequence(typedNumber(next))}
          error={errorAt(errors, '/afterSequence')}
        />
      )}
    </>
  );
}

/** How many events a replay from there has. */
function Amount({ webhook, from }: { webhook: WebhookDetail; from: From | undefined }) {
  const { can } = usePermissions();
  const { tenantId } = webhook;
  const mayCount = can('event:read', { tenantId });
  const [asked] = useDebouncedValue(countedFrom(from), DEBOUNCE_MS);
  const count = useQuery(replayCountQuery(webhook, mayCount ? asked : undefined));
  if (!mayCount)
    return (
      <p className={classes.muted}>
        Counting these events needs the permission event:read. The job shows the number.
      </p>
    );
  return (
    <div aria-live="polite" className={formClasses.text}>
      {count.error && <ProblemNote problem={count.error} retry={() => void count.refetch()} />}
      {count.data && !count.error && <AmountText {...count.data} />}
    </div>
  );
}

function AmountText({ value, exact }: { value: number; exact: boolean }) {
  if (value === 0) return <>No event since then.</>;
  if (exact && value <= MAX_EVENTS)
    return (
      <>
        <strong>{formatNumberOf(value, 'event')}</strong> would be sent.
      </>
    );
  return (
    <>
      More than {formatCount(Math.min(value, MAX_EVENTS))} events. A replay sends the first{' '}
      {formatCount(MAX_EVENTS)}; its job says after which sequence to go on.
    </>
  );
}
