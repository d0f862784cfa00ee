import { workflowBundle } from './bundle.ts';

/** `npm run bundle`: bundles the workflows ahead of the first start. */
process.stdout.write(`${await workflowBundle()}\n`);
