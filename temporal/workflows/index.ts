export { job } from './job.ts';
export { reconcile } from './reconcile.ts';
