import { answerWithUsage, print, readArguments } from './cli/program.ts';
import { versionText } from './versionText.ts';

/**
 * Answers the options of a process that has its settings in the environment: `--version` and `--help`.
 * Returns the exit code when there is nothing to start: such an option, one that is not known, or more
 * words than `words`.
 */
export function answerOptions(
  args: readonly string[],
  purpose: string,
  words = 0,
): number | undefined {
  const usage = `${purpose}

The settings are environment variables: see docs/configuration.md.

  --version  prints the version
  --help     prints this text`;
  try {
    const { values } = readArguments(args, { options: { version: { type: 'boolean' } }, words });
    if (values.version !== true) return undefined;
    print(versionText());
    return 0;
  } catch (error) {
    const code = answerWithUsage(error, usage);
    if (code === undefined) throw error;
    return code;
  }
}
