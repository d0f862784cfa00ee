import { Gauge, type Registry } from '@prometheus-io/client';

/**
 * The state of the installation: what waits, what is late, and which backups there are. Ages are in
 * seconds; undefined where there is nothing that could have one.
 */
export type InstallationState = {
  /** Seconds since it was measured. */
  ageSeconds: number;
  jobsQueued: number;
  jobsRunning: number;
  oldestQueuedJobSeconds: number;
  remoteJobsQueued: number;
  oldestQueuedRemoteJobSeconds: number;
  outboxTasks: number;
  oldestOutboxTaskSeconds: number;
  eventsUnpublished: number;
  oldestUnpublishedEventSeconds: number;
  deliveriesQueued: number;
  oldestQueuedDeliverySeconds: number;
  auditUnsealed: number;
  oldestUnsealedAuditSeconds: number;
  schedulesLate: number;
  scheduleLatenessSeconds: number;
  runsMissed: number;
  workers: number;
  lastBackupAgeSeconds: number | null;
  lastTestedBackupAgeSeconds: number | null;
};

/** Reads the state, of which all metrics of a scrape ask; undefined before the first answer. */
export type ReadInstallationState = () => Promise<InstallationState | undefined>;

/** The metric of each value, and its help. Counts are exact up to 100,000. */
export const INSTALLATION_GAUGES: Readonly<
  Record<keyof InstallationState, readonly [name: string, help: string]>
> = {
  ageSeconds: [
    'holdfast_state_age_seconds',
    'Seconds since the values of the installation were measured. They are old while PostgreSQL is unavailable.',
  ],
  jobsQueued: ['holdfast_jobs_queued', 'Jobs that wait for their first attempt, at workers.'],
  jobsRunning: ['holdfast_jobs_running', 'Jobs that have started and not ended.'],
  oldestQueuedJobSeconds: [
    'holdfast_jobs_oldest_queued_seconds',
    'Age of the oldest job that waits for its first attempt, at workers; 0 without one.',
  ],
  remoteJobsQueued: [
    'holdfast_jobs_queued_remote',
    'Jobs that wait for their first attempt, at runners.',
  ],
  oldestQueuedRemoteJobSeconds: [
    'holdfast_jobs_oldest_queued_remote_seconds',
    'Age of the oldest job that waits for its first attempt, at runners; 0 without one.',
  ],
  outboxTasks: ['holdfast_outbox_tasks', 'Outbox tasks that were not sent to Temporal yet.'],
  oldestOutboxTaskSeconds: [
    'holdfast_outbox_oldest_seconds',
    'Age of the oldest outbox task; 0 without one.',
  ],
  eventsUnpublished: ['holdfast_events_unpublished', 'Committed events without a sequence.'],
  oldestUnpublishedEventSeconds: [
    'holdfast_events_oldest_unpublished_seconds',
    'Age of the oldest event without a sequence; 0 without one.',
  ],
  deliveriesQueued: ['holdfast_deliveries_queued', 'Deliveries that wait for a slot.'],
  oldestQueuedDeliverySeconds: [
    'holdfast_deliveries_oldest_queued_seconds',
    'Age of the oldest delivery that waits for a slot; 0 without one.',
  ],
  auditUnsealed: ['holdfast_audit_unsealed', 'Entries of the audit log that are not sealed yet.'],
  oldestUnsealedAuditSeconds: [
    'holdfast_audit_oldest_unsealed_seconds',
    'Age of the oldest entry of the audit log that is not sealed; 0 without one.',
  ],
  schedulesLate: [
    'holdfast_schedules_late',
    'Schedules with an occurrence that is due and not decided.',
  ],
  scheduleLatenessSeconds: [
    'holdfast_schedules_lateness_seconds',
    'How late the latest of these schedules is; 0 without one.',
  ],
  runsMissed: ['holdfast_schedule_runs_missed', 'Runs of schedules missed in the last 24 hours.'],
  workers: ['holdfast_workers', 'Workers that have announced themselves in the last 30 seconds.'],
  lastBackupAgeSeconds: [
    'holdfast_backup_age_seconds',
    'Age of the snapshot of the newest full backup of the platform without `archiveError`; absent without one.',
  ],
  lastTestedBackupAgeSeconds: [
    'holdfast_backup_tested_age_seconds',
    'Age of the snapshot of the newest one of these that a test restore has loaded; absent without one.',
  ],
};

/** Registers the metrics of the installation. Returns what sets how its state is read. */
export function installationGauges(registers: Registry[]): (read: ReadInstallationState) => void {
  let readState: ReadInstallationState = () => Promise.resolve(undefined);

  for (const key of Object.keys(INSTALLATION_GAUGES) as (keyof InstallationState)[]) {
    const [name, help] = INSTALLATION_GAUGES[key];
    const gauge = new Gauge({
      name,
      help,
      registers,
      async collect() {
        const value = (await readState())?.[key];
        if (value === undefined) return;
        if (value === null) this.remove();
        else this.set(value);
      },
    });
    // Nothing is known before the first answer: 0 would say that all is well.
    gauge.remove();
  }
  return (read) => void (readState = read);
}
