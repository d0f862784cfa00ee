import type { WorkflowHandle } from '@temporalio/client';
import type { DeliveryRecord, WebhookRecord } from '../../api/webhooks/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startSink, respondWith, type Sink } from '../support/sink.ts';

/** A way in which a delivery can go: how the endpoint answers, and what else happens. */
type Branch = {
  name: string;
  answers: Parameters<Sink['respond']>[1];
  retryPolicy?: object;
  /** Follows the job of a redelivery: a delivery that succeeds in its first attempt has no workflow. */
  redelivered?: true;
  /** Runs after the first attempt. */
  act?(app: TestApp, webhookId: string, jobId: string): Promise<unknown>;
};

const hour = { maxIntervalSeconds: 3_600 };
const failing = { answers: respondWith(500), retryPolicy: hour };

export const DELIVERIES: readonly Branch[] = [
  { name: 'deliver.success', answers: respondWith(204), redelivered: true },
  {
    name: 'deliver.retry',
    answers: (_request, response, nth) => response.writeHead(nth < 3 ? 500 : 204).end(),
    retryPolicy: { maxIntervalSeconds: 0.05 },
  },
  {
    name: 'deliver.retry-after',
    answers: (_request, response, nth) =>
      response.writeHead(nth < 2 ? 429 : 204, { 'retry-after': '1' }).end(),
    retryPolicy: { maxIntervalSeconds: 0.05 },
  },
  {
    name: 'deliver.failure',
    answers: respondWith(500),
    retryPolicy: { maxAttempts: 2, maxIntervalSeconds: 0.05 },
  },
  { name: 'deliver.endpoint-removed', answers: respondWith(410) },
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
    act: (app, _id, jobId) => client(app).post(`/api/jobs/${jobId}/cancel`).expect(202),
  },
];

type DeliveryRow = { id: string; job_id: string | null; status: string };

const client = (app: TestApp) => app.client.as({ tenant: 'recorder' });

/** Runs a branch to its end and returns the handle of its workflow. */
export async function runBranch(
  app: TestApp,
  { answers, retryPolicy, redelivered, act }: Branch,
): Promise<WorkflowHandle> {
  const sink = await startSink();
  sink.respond('/', answers);
  try {
    const { id } = await client(app)
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: sink.url('/'),
        eventTypes: ['job.created'],
        ...(retryPolicy && { retryPolicy }),
      })
      .expect(201);
    await client(app).post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    const readDelivery = async (): Promise<DeliveryRow | undefined> =>
      app.deps.db('deliveries').where({ webhook_id: id }).first();
    const delivery = assertDefined(
      await eventually(readDelivery, (row) =>
        redelivered ? row?.status === 'succeeded' : row?.job_id != null,
      ),
      'the delivery',
    );
    const { jobId } = redelivered
      ? await client(app)
          .post<DeliveryRecord>(`/api/deliveries/${delivery.id}/redeliver`)
          .expect(202)
      : { jobId: delivery.job_id };
    if (act) {
      await eventually(
        () =>
          app.deps
            .db('job_logs')
            .where({ job_id: jobId })
            .whereLike('message', '%next attempt%')
            .first(),
        Boolean,
      );
      await act(app, id, String(jobId));
    }
    await eventually(readDelivery, (row) => row?.status !== 'pending');
    const handle = await app.deps.temporal.call(20_000, (temporal) =>
      Promise.resolve(temporal.workflow.getHandle(`job:${jobId}`)),
    );
    await handle.result().catch(() => undefined);
    await app.deps
      .db('webhooks')
      .where({ id, deleted_at: null })
      .update({ enabled: false, disabled_at: new Date(), disabled_reason: 'request' });
    return handle;
  } finally {
    await sink.stop();
  }
}
