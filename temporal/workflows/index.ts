export { approval } from './approval.ts';
export { job } from './job.ts';
export { reconcile } from './reconcile.ts';
export { fireSchedule, reconcileSchedules, releaseSchedule } from './schedules.ts';
