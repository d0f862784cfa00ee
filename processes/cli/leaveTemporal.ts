import { setTimeout as sleep } from 'node:timers/promises';
import { findInTemporal, removeFromTemporal } from '../../temporal/removeInstallation.ts';
import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';

/** The list of workflows follows their end by about a second. */
const LIST_DELAY_MS = 1_000;

/** Rounds of 500 workflows. */
const MAX_ROUNDS = 2_000;

export const leaveTemporal: Command = {
  usage:
    'leave-temporal [--remove]: lists the schedules and open workflows of this installation in its Temporal namespace; --remove deletes and terminates them',
  usesDatabase: () => false,
  read(args) {
    const { remove } = readArguments(args, { options: { remove: { type: 'boolean' } } }).values;
    return async ({ temporal, config }) => {
      const found = await findInTemporal(temporal, config.taskQueue);
      print(`Namespace   ${config.temporal.namespace}`);
      print(`Task queue  ${config.taskQueue}`);
      print(`Schedules   ${found.schedules.length}`);
      print(
        `Workflows   ${found.workflows.length}${found.workflows.length === 500 ? ' or more' : ''}`,
      );
      if (!remove) {
        print('');
        print('Nothing was removed. Stop all processes, then call this again with --remove.');
        return 0;
      }
      for (let rest = found, round = 0; round < MAX_ROUNDS; round++) {
        if (rest.schedules.length + rest.workflows.length === 0) {
          print('Nothing of this installation is left in the namespace.');
          return 0;
        }
        await removeFromTemporal(temporal, rest);
        await sleep(LIST_DELAY_MS);
        rest = await findInTemporal(temporal, config.taskQueue);
      }
      print('Workflows are still being started. Stop all processes first.');
      return 1;
    };
  },
};
