export { approval } from './approvals.ts';
export { backup, removeBackup, restore } from './backups.ts';
export { job, shortJobs } from './jobs.ts';
export { reconcile } from './reconcile.ts';
export { fireSchedule, reconcileSchedules, releaseBufferedRun } from './schedules.ts';
