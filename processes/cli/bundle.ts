import { workflowBundle } from '../../temporal/bundle.ts';
import { buildConsole } from '../../ui/build.ts';

/**
 * `npm run bundle`: bundles the workflows, so that workers start faster, and the console, which
 * processes do not build themselves. Needs the devDependencies.
 */
process.stdout.write(`${await workflowBundle()}\n${await buildConsole()}\n`);
