import { makeCurrent, readDeployedVersions } from '../../temporal/deployment.ts';
import type { Command } from './command.ts';
import { print, readArguments, UsageError } from './program.ts';

export const deployment: Command = {
  usage:
    'deployment [current <build id>]: lists the versions of the workers that Temporal knows; current hands all work to one of them',
  usesDatabase: () => false,
  read(args) {
    const [action, current] = readArguments(args, { words: 2 }).words;
    if (action !== undefined && (action !== 'current' || current === undefined))
      throw new UsageError('The only action is: current <build id>');
    return async ({ temporal, config }) => {
      const { deploymentName: name } = config;
      if (current !== undefined) await makeCurrent(temporal, { name, buildId: current });
      print(`Deployment  ${name}`);
      for (const { buildId, isCurrent, state } of await readDeployedVersions(temporal, name))
        print(`${isCurrent ? '* ' : '  '}${buildId}  ${state}`);
      return 0;
    };
  },
};
