import type { Info } from '@temporalio/activity';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { TRACE_HEADER } from '../../domain/dispatch/workflowIds.ts';
import { inSpan, inSpanOf, type TraceParent } from '../tracing.ts';

function traceOf(headers: Headers): TraceParent | undefined {
  const sent = headers[TRACE_HEADER];
  return sent ? defaultPayloadConverter.fromPayload<string>(sent) : undefined;
}

const optionsOf = ({ activityType, attempt, workflowExecution, taskQueue }: Info) =>
  ({
    kind: 'consumer',
    attributes: {
      'temporal.activity.type': activityType,
      'temporal.activity.attempt': attempt,
      'temporal.task_queue': taskQueue,
      ...(workflowExecution && {
        'temporal.workflow.id': workflowExecution.workflowId,
        'temporal.run.id': workflowExecution.runId,
      }),
    },
  }) as const;

/** Runs of the system itself, each minute. */
const isReconciler = ({ workflowType = '' }: Info): boolean => workflowType.startsWith('reconcile');

/**
 * Makes a span of each activity, in the trace of the request that started its workflow. A run that Temporal
 * has started by itself, of a schedule, begins a trace.
 */
export const activitySpans: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    execute(input, next) {
      const name = `activity ${info.activityType}`;
      const parent = traceOf(input.headers);
      const work = () => next(input);
      return parent === undefined && !isReconciler(info)
        ? inSpan(name, optionsOf(info), work)
        : inSpanOf(parent, name, optionsOf(info), work);
    },
  },
});
