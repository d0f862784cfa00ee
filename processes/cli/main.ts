import path from 'node:path';
import { ConfigError, readConfig } from '../../platform/config.ts';
import { createLog } from '../../platform/log.ts';
import { admin } from './admin.ts';
import { versionText } from '../versionText.ts';
import { EXIT_USAGE, print, type Command } from './command.ts';
import { demoData } from './demoData.ts';
import { deployment } from './deployment.ts';
import { withEmbeddedStack } from './embeddedStack.ts';
import { leaveTemporal } from './leaveTemporal.ts';
import { reencryptSecrets } from './reencryptSecrets.ts';
import { token } from './token.ts';
import { verifyAudit } from './verifyAudit.ts';

/** Commands of an operator. Without `DATABASE_URL` they use the embedded stack on this machine. */
const COMMANDS: Readonly<Record<string, Command>> = {
  admin,
  token,
  'verify-audit': verifyAudit,
  deployment,
  'demo-data': demoData,
  'reencrypt-secrets': reencryptSecrets,
  'leave-temporal': leaveTemporal,
};

function printUsage(): number {
  const lines = Object.values(COMMANDS).map((command) => `  ${command.usage}`);
  process.stderr.write(`Commands:\n${lines.join('\n')}\n`);
  return EXIT_USAGE;
}

/**
 * Without `DATABASE_URL`: how to reach the embedded stack that runs on this machine. A command that does not use the
 * database needs only `TEMPORAL_ADDRESS`.
 */
async function stackEnv({ usesDatabase }: Command): Promise<Record<string, string>> {
  if (process.env.DATABASE_URL) return {};
  if (usesDatabase === false && process.env.TEMPORAL_ADDRESS)
    return { DATABASE_URL: 'postgres://unused' };
  const { readRunningStack } = await withEmbeddedStack(() => import('../../dev/runningStack.ts'));
  return readRunningStack(path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast'));
}

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  if (name === '--version') {
    print(versionText());
    return 0;
  }
  const command = COMMANDS[name];
  if (!command) return printUsage();
  // Loaded late: a wrong name is answered immediately.
  const { compose } = await import('../composition/index.ts');
  const { loadJobTypeModules } = await import('../../services/jobTypes/modules/load.ts');
  const config = readConfig({ ...(await stackEnv(command)), ...process.env });
  const modules = await loadJobTypeModules(config.jobTypeModules);
  const deps = compose(config, createLog(config.logLevel), { modules });
  try {
    const code = await command.run(deps, args);
    return code === EXIT_USAGE ? printUsage() : code;
  } finally {
    await deps.stop();
  }
}

function messageOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof Error && error.name === 'TransportError')
    return `Failed: Temporal does not answer at TEMPORAL_ADDRESS: ${error.message}`;
  return error instanceof Error ? `Failed: ${error.message}` : String(error);
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exit(1);
  },
);
