export { approval } from './approval.ts';
export { backup, removeBackup, restore } from './backups.ts';
export { job } from './job.ts';
export { reconcile } from './reconcile.ts';
export { fireSchedule, reconcileSchedules, releaseSchedule } from './schedules.ts';
