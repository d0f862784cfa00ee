import { Counter, Histogram, type Registry } from '@prometheus-io/client';

/** Boundaries in seconds: of requests and calls, and of work that may take hours. */
const SHORT = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LONG = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400];

/** Methods of routes. Clients may send others, each of which would be a series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** `waits`: the request asked to wait for a result, so that its duration says nothing about the API. */
export type HttpExchange = {
  method: string;
  route: string;
  status: number;
  waits: boolean;
  seconds: number;
};

/** Registers the metrics of HTTP. `observeHttp` notes a request. */
export function httpDurations(registers: Registry[]) {
  const seconds = new Histogram({
    name: 'holdfast_http_request_seconds',
    help: 'Duration of HTTP requests in seconds, by method, path of the route, class of status, and whether they asked to wait (Prefer: wait).',
    labelNames: ['method', 'path', 'status', 'waits'] as const,
    buckets: SHORT,
    registers,
  });
  const responses = new Counter({
    name: 'holdfast_http_responses_total',
    help: 'HTTP responses, by status.',
    labelNames: ['status'] as const,
    registers,
  });
  return {
    observeHttp(exchange: HttpExchange): void {
      const method = METHODS.has(exchange.method) ? exchange.method : 'other';
      const status = `${Math.floor(exchange.status / 100)}xx`;
      const waits = String(exchange.waits);
      seconds.observe({ method, path: exchange.route, status, waits }, exchange.seconds);
      responses.inc({ status: exchange.status });
    },
  };
}

/** Registers the histograms of jobs: `type` is a type of the product or a module, or `command`. */
export const jobDurations = (registers: Registry[]) => ({
  jobWaitSeconds: new Histogram({
    name: 'holdfast_job_wait_seconds',
    help: 'Time from the creation of a job to its first attempt, by lane and type.',
    labelNames: ['lane', 'type'] as const,
    buckets: LONG,
    registers,
  }),
  jobRunSeconds: new Histogram({
    name: 'holdfast_job_run_seconds',
    help: 'Time from the first attempt of a job to its end, with waits for retries, by lane and type.',
    labelNames: ['lane', 'type'] as const,
    buckets: LONG,
    registers,
  }),
  jobSeconds: new Histogram({
    name: 'holdfast_job_seconds',
    help: 'Time from the creation of a job to its end, by lane and final status.',
    labelNames: ['lane', 'status'] as const,
    buckets: LONG,
    registers,
  }),
});

/** Registers the histograms of deliveries, commits and calls to Temporal. */
export const workDurations = (registers: Registry[]) => ({
  deliverySeconds: new Histogram({
    name: 'holdfast_delivery_seconds',
    help: 'Time from when a delivery was queued until its endpoint accepted it.',
    buckets: LONG,
    registers,
  }),
  deliveryAttemptSeconds: new Histogram({
    name: 'holdfast_delivery_attempt_seconds',
    help: 'Duration of the exchange with an endpoint, by outcome (succeeded, failed).',
    labelNames: ['outcome'] as const,
    buckets: SHORT,
    registers,
  }),
  commitSeconds: new Histogram({
    name: 'holdfast_commit_seconds',
    help:
      'Duration of commits with their use case, by outcome: committed, refused (by a rule), ' +
      'failed (unexpectedly, or the database was unavailable).',
    labelNames: ['outcome'] as const,
    buckets: SHORT,
    registers,
  }),
  temporalCallSeconds: new Histogram({
    name: 'holdfast_temporal_call_seconds',
    help:
      'Duration of calls to Temporal for outbox tasks, by kind of the task (start, signal, cancel, ' +
      'schedule) and outcome (done, failed).',
    labelNames: ['kind', 'outcome'] as const,
    buckets: SHORT,
    registers,
  }),
});
