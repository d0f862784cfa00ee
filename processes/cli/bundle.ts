import { workflowBundle } from '../../temporal/bundle.ts';

/** `npm run bundle`: bundles the workflows, so that workers start faster. */
process.stdout.write(`${await workflowBundle()}\n`);
