import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { createApprovalActivities } from '../../activities/approvals.ts';
import { createBackupActivities } from '../../activities/backups.ts';
import { createJobActivities } from '../../activities/jobs.ts';
import { createReconcileActivities } from '../../activities/reconcile.ts';
import { createScheduleActivities } from '../../activities/schedules.ts';
import * as workflows from '../../temporal/workflows/index.ts';
import type { Recorded } from './histories.ts';

const FOLDER = path.join(import.meta.dirname, '../../temporal/workflows');

/** The activities of the product. They are only named: nothing behind them is there. */
const ACTIVITIES = [
  createApprovalActivities,
  createBackupActivities,
  createJobActivities,
  createReconcileActivities,
  createScheduleActivities,
].flatMap((create) => Object.keys(create({} as never)));

/** A literal of a summary, as a pattern: the parts that the code fills in may be anything. */
const patternOf = (literal: string): string =>
  literal
    .replaceAll(/\$\{[^}]*\}/g, '\u0000')
    .replaceAll(/[.*+?^$()|[\]\\{}]/g, String.raw`\$&`)
    .replaceAll('\u0000', '.*');

/**
 * What the code of the workflows says that its runs do, as patterns of what `pathsIn` finds in histories: the activities, the
 * timers, attempts and children with a summary, the ends of each workflow, and the continuations as a new run.
 */
export async function pathsOfCode(): Promise<string[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.ts'));
  const code = await Promise.all(files.map((file) => readFile(path.join(FOLDER, file), 'utf8')));
  const all = code.join('\n');
  const summaries = [...all.matchAll(/[sS]ummary:(.*)/g)].flatMap(([, rest = '']) =>
    [...rest.matchAll(/'([^']+)'|`([^`]+)`/g)].map(([, plain, filled]) => plain ?? filled ?? ''),
  );
  const continued = [...all.matchAll(/continueAsNew<typeof (\w+)>/g)].map(([, name]) => name);
  return [
    ...ACTIVITIES.map((name) => `activity ${name}`),
    ...summaries.map((literal) => `summary ${patternOf(literal)}`),
    ...Object.keys(workflows).map((name) => `${name} COMPLETED`),
    ...continued.map((name) => `${name} CONTINUED_AS_NEW`),
  ];
}

type Payload = { data?: string };
/** The fields of an event of a history in JSON that say what the code has done. */
type Event = {
  eventType: string;
  userMetadata?: { summary?: Payload };
  workflowExecutionStartedEventAttributes?: { workflowType: { name: string } };
  activityTaskScheduledEventAttributes?: { activityType: { name: string } };
  markerRecordedEventAttributes?: { details?: { data?: { payloads?: Payload[] } } };
};

const decode = ({ data }: Payload): unknown =>
  data === undefined ? undefined : JSON.parse(Buffer.from(data, 'base64').toString());

/** The name of the activity that an event schedules, or whose result it is if it was a local one. */
function activityOf(event: Event): string | undefined {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled) return scheduled.activityType.name;
  const [marker] = event.markerRecordedEventAttributes?.details?.data?.payloads ?? [];
  return marker && (decode(marker) as { activity_type?: string }).activity_type;
}

const CLOSED = /^EVENT_TYPE_WORKFLOW_EXECUTION_(COMPLETED|CONTINUED_AS_NEW)$/;

/** What a recorded run did, in the words of `pathsOfCode`. */
export function pathsIn({ history }: Recorded): string[] {
  const { events } = history as { events: Event[] };
  const workflow = events[0]?.workflowExecutionStartedEventAttributes?.workflowType.name;
  return events.flatMap((event) => {
    const activity = activityOf(event);
    const summary = event.userMetadata?.summary;
    const closed = CLOSED.exec(event.eventType)?.[1];
    return [
      ...(activity === undefined ? [] : [`activity ${activity}`]),
      ...(summary ? [`summary ${String(decode(summary))}`] : []),
      ...(closed === undefined ? [] : [`${workflow} ${closed}`]),
    ];
  });
}
