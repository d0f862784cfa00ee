import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../app/api.ts';
import { useIdempotencyKeys } from '../../app/idempotency.ts';
import { serverNow } from '../../parts/clock.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { Exact } from '../../parts/Exact.tsx';
import formClasses from '../../parts/form/Form.module.css';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Exchange } from './Exchange.tsx';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';
import classes from './Webhooks.module.css';

type Props = { webhook: WebhookDetail; opened: boolean; onClose: () => void };

/** Sends a test message, and shows what the endpoint answers. */
export function TestDialog({ webhook, opened, onClose }: Props) {
  return (
    <Dialog opened={opened} onClose={onClose} title={`Test ${nameOf(webhook)}`} size="xl">
      <Test webhook={webhook} onClose={onClose} />
    </Dialog>
  );
}

function Test({ webhook: { id, endpointUrl }, onClose }: Omit<Props, 'opened'>) {
  const client = useQueryClient();
  const [startedAt, setStartedAt] = useState<string>();
  const keys = useIdempotencyKeys();
  const test = useMutation({
    mutationFn: () =>
      keys.once(id, (header) =>
        answer(api.POST('/api/webhooks/{id}/test', { params: { path: { id }, header } })),
      ),
    onMutate: () => setStartedAt(new Date(serverNow()).toISOString()),
    onSettled: () => client.invalidateQueries({ queryKey: [...webhookKey(id), 'history'] }),
  });
  const { data, error, isPending } = test;
  useBusyDialog(isPending);
  return (
    <div className={formClasses.form}>
      <p className={formClasses.text}>
        Sends one signed message of the type <code>webhook.test</code> to{' '}
        <code className={classes.url}>
          <Exact text={endpointUrl} />
        </code>
        . It is neither an event nor a delivery. A disabled webhook can be tested, too.
      </p>
      <div aria-live="polite">
        {isPending && (
          <span className={classes.inline}>
            <StatusBadge status="running" label="Waiting for the answer" plain />
            <Duration from={startedAt} />
          </span>
        )}
        {!isPending && <RefusedNote problem={error} />}
        {!isPending && !error && data && <Result report={data} />}
      </div>
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onClose} disabled={isPending}>
          Close
        </Button>
        <ReasonButton icon="bolt" loading={isPending} onClick={() => test.mutate()}>
          {data || error ? 'Send again' : 'Send the test message'}
        </ReasonButton>
      </div>
    </div>
  );
}

function Result({ report }: { report: Schemas['WebhookTestReport'] }) {
  return (
    <div className={classes.stack}>
      <StatusBadge
        status={report.ok ? 'accepted' : 'failed'}
        label={report.ok ? 'The endpoint accepts it' : 'The endpoint does not accept it'}
      />
      <Exchange attempt={report} />
      {report.retryAfterMs !== null && (
        <p className={classes.muted}>
          It asks for a retry after <Duration ms={report.retryAfterMs} />.
        </p>
      )}
    </div>
  );
}
