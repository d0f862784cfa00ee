import { makeCurrent, readDeployedVersions } from '../../temporal/deployment.ts';
import { EXIT_USAGE, print, type Command } from './command.ts';

export const deployment: Command = {
  usage:
    'deployment [current <build id>]: lists the versions of the workers that Temporal knows; current hands all work to one of them',
  usesDatabase: false,
  async run({ temporal, config }, args) {
    const { deploymentName: name } = config;
    if (args[0] === 'current' && args[1] !== undefined && args.length === 2)
      await makeCurrent(temporal, { name, buildId: args[1] });
    else if (args.length > 0) return EXIT_USAGE;
    print(`Deployment  ${name}`);
    for (const { buildId, isCurrent, state } of await readDeployedVersions(temporal, name))
      print(`${isCurrent ? '* ' : '  '}${buildId}  ${state}`);
    return 0;
  },
};
