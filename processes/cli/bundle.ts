import { print, readArguments, runProgram } from './program.ts';

const USAGE = `npm run bundle
  Bundles the workflows, so that workers start faster, and the console, which processes do not build themselves. Needs
  the devDependencies.`;

async function main(args: readonly string[]): Promise<number> {
  readArguments(args);
  // Loaded late: wrong arguments are answered immediately.
  const { workflowBundle } = await import('../../temporal/bundle.ts');
  const { buildConsole } = await import('../../ui/build.ts');
  const workflows = await workflowBundle();
  if ('writeError' in workflows) throw workflows.writeError;
  print(`${workflows.codePath}\n${await buildConsole()}`);
  return 0;
}

await runProgram(() => USAGE, main);
