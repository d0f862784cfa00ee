import type { WorkflowHandle } from '@temporalio/client';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startSink, status, type Sink } from '../support/sink.ts';

/** One branch of a delivery, from the event to the end of its run: how the endpoint answers, and what happens meanwhile. */
type Branch = {
  name: string;
  answers: Parameters<Sink['behave']>[1];
  retryPolicy?: object;
  /** Done when the first attempt has come back. */
  act?(app: TestApp, webhookId: string, delivery: any): Promise<unknown>;
};

const hour = { maxIntervalSeconds: 3_600 };
const failing = { answers: status(500), retryPolicy: hour };

export const DELIVERIES: readonly Branch[] = [
  { name: 'deliver.success', answers: status(204) },
  {
    name: 'deliver.retry',
    answers: (_got, response, nth) => response.writeHead(nth < 3 ? 500 : 204).end(),
    retryPolicy: { maxIntervalSeconds: 0.05 },
  },
  {
    name: 'deliver.retry-after',
    answers: (_got, response, nth) =>
      response.writeHead(nth < 2 ? 429 : 204, { 'retry-after': '1' }).end(),
    retryPolicy: { maxIntervalSeconds: 0.05 },
  },
  {
    name: 'deliver.failure',
    answers: status(500),
    retryPolicy: { maxAttempts: 2, maxIntervalSeconds: 0.05 },
  },
  { name: 'deliver.gone', answers: status(410) },
  {
    name: 'deliver.webhook-disabled',
    ...failing,
    act: (app, id) => client(app).put(`/api/webhooks/${id}`, { enabled: false }),
  },
  {
    name: 'deliver.webhook-deleted',
    ...failing,
    act: (app, id) => client(app).delete(`/api/webhooks/${id}`),
  },
  {
    name: 'deliver.cancelled',
    ...failing,
    act: (app, _id, delivery) => client(app).post(`/api/jobs/${delivery.jobId}/cancel`),
  },
];

const client = (app: TestApp) => app.client.as({ tenant: 'recorder' });

/** Runs a branch to its end and returns the handle of its workflow. */
export async function deliver(
  app: TestApp,
  { answers, retryPolicy, act }: Branch,
): Promise<WorkflowHandle> {
  const sink = await startSink();
  sink.behave('/', answers);
  try {
    const made = await client(app).post('/api/webhooks', {
      endpointUrl: sink.url('/'),
      eventTypes: ['job.created'],
      ...(retryPolicy && { retryPolicy }),
    });
    await client(app).post('/api/jobs', { type: 'core.echo', payload: {} });
    const look = (): Promise<any> =>
      app.deps.db('deliveries').where({ webhook_id: made.body.id }).first() as Promise<any>;
    const delivery = await eventually(look, (row) => row?.job_id != null);
    if (act) {
      await eventually(
        () =>
          app.deps
            .db('job_logs')
            .where({ job_id: delivery.job_id })
            .whereLike('message', '%next attempt%')
            .first(),
        Boolean,
      );
      await act(app, made.body.id, { jobId: delivery.job_id });
    }
    await eventually(look, (row) => row.status !== 'pending');
    const handle = await app.deps.link.call(10_000, (temporal) =>
      Promise.resolve(temporal.workflow.getHandle(`job:${delivery.job_id}`)),
    );
    await handle.result().catch(() => undefined);
    await app.deps
      .db('webhooks')
      .where({ id: made.body.id, deleted_at: null })
      .update({ enabled: false, disabled_at: new Date(), disabled_reason: 'request' });
    return handle;
  } finally {
    await sink.stop();
  }
}
