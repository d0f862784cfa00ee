import path from 'node:path';
import { readCommandConfig } from '../../platform/config.ts';
import { createLog } from '../../platform/log.ts';
import { admin } from './admin.ts';
import { versionText } from '../versionText.ts';
import type { Command } from './command.ts';
import { demoData } from './demoData.ts';
import { deployment } from './deployment.ts';
import { withEmbeddedStack } from './embeddedStack.ts';
import { leaveTemporal } from './leaveTemporal.ts';
import { HelpRequest, print, runProgram, UsageError } from './program.ts';
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

/** The commands that are programs of their own, as `docker/holdfast` calls them. */
const OTHER_PROGRAMS = [
  'migrate <command>: migrates the database schema; migrate --help lists its commands',
  'archive <command>: reads, restores and registers archives of backups; archive --help lists its commands',
  'job-type <command>: checks and tries declarations of job types; job-type --help lists its commands',
  'openapi [<file>]: writes the OpenAPI document',
];

/** The usage of a command, or of all. */
function usageOf([name = '']: readonly string[]): string {
  const own = Object.values(COMMANDS).map(({ usage }) => usage);
  const others = process.env.CALLED_AS === 'holdfast' ? OTHER_PROGRAMS : [];
  const usages = COMMANDS[name] ? [COMMANDS[name].usage] : [...own, ...others];
  return ['Commands:', ...usages.map((usage) => `  ${usage}`)].join('\n');
}

/**
 * Without `DATABASE_URL`: how to reach the embedded stack that runs on this machine. A command that does not use the
 * database needs only `TEMPORAL_ADDRESS`.
 */
async function stackEnv(usesDatabase: boolean): Promise<Record<string, string>> {
  if (process.env.DATABASE_URL) return {};
  if (!usesDatabase && process.env.TEMPORAL_ADDRESS) return { DATABASE_URL: 'postgres://unused' };
  const { readRunningStack } = await withEmbeddedStack(() => import('../../dev/runningStack.ts'));
  return readRunningStack(path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast'));
}

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  if (name === '--version') {
    print(versionText());
    return 0;
  }
  if (name === '--help' || name === '-h') throw new HelpRequest();
  const command = COMMANDS[name];
  if (!command) throw new UsageError(name === '' ? 'A command is needed' : `Unknown: ${name}`);
  const work = command.read(args);
  const usesDatabase = command.usesDatabase?.(args) ?? true;
  // Loaded late: wrong arguments are answered immediately.
  const { compose } = await import('../composition/index.ts');
  const { requireSchema } = await import('./requireSchema.ts');
  const { loadJobTypeModules } = await import('../../services/jobTypes/modules/load.ts');
  const config = readCommandConfig({ ...(await stackEnv(usesDatabase)), ...process.env });
  const modules = await loadJobTypeModules(config.jobTypeModules);
  const deps = compose(config, createLog(config.logLevel), { modules });
  try {
    if (usesDatabase) await requireSchema(deps.db);
    return await work(deps);
  } finally {
    await deps.stop();
  }
}

await runProgram(usageOf, main);
