import { once } from 'node:events';
import path from 'node:path';
import { compose, type Deps } from '../composition.ts';
import { demoData } from '../processes/cli/demoEstate.ts';
import { runningStack } from '../dev/runningStack.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { PLATFORM } from '../domain/access/scope.ts';
import { ConfigError, readConfig } from '../platform/config.ts';
import { createLog } from '../platform/log.ts';

type Command = { about: string; run(deps: Deps, args: readonly string[]): Promise<number> };

/** What a command gives back when it was called in a way that it does not know. */
const USAGE = 2;

/** Records that are written in one transaction. */
const DEMO_AT_ONCE = 500;

const say = (text: string) => void process.stdout.write(`${text}\n`);

/** Commands for whoever runs an installation, or the embedded stack on this machine. Each gives its exit code. */
const COMMANDS: Readonly<Record<string, Command>> = {
  admin: {
    about:
      'admin [user name] [--promote]: makes a local administrator, or lets one in again, with a password for the next login',
    async run({ administrator }, args) {
      const [username, ...more] = args.filter((arg) => arg !== '--promote');
      if (more.length > 0 || username?.startsWith('-')) return USAGE;
      const login = await administrator.recover(username, args.includes('--promote'));
      if (!login) {
        say(
          `${username} is no administrator. To make them one: npm run admin -- ${username} --promote`,
        );
        return 1;
      }
      say(
        login.was === 'new'
          ? 'A new administrator was made.'
          : 'The password was reset, sessions were ended, failed attempts forgotten.',
      );
      say(
        `\nUser name          ${login.username}\nOne-time password  ${login.oneTimePassword}\n\nIt must be changed at the first login.`,
      );
      return 0;
    },
  },
  'verify-audit': {
    about:
      'verify-audit [tenant]: checks the chain of the audit trail and names the first broken link',
    async run({ sealer }, [tenant, ...more]) {
      if (more.length > 0 || tenant?.startsWith('-')) return USAGE;
      const tenants = tenant === undefined ? await sealer.tenants() : [tenant];
      let broken = 0;
      for (const each of tenants) {
        const check = await sealer.verify(each);
        const open = check.unsealed > 0 ? `, ${check.unsealed} not yet sealed` : '';
        if (check.checked + check.unsealed === 0 && !check.broken) {
          say(`${each}: there are no entries`);
          broken += 1;
        } else if (!check.broken) say(`${each}: ${check.checked} entries, whole${open}`);
        else
          say(
            `${each}: BROKEN at position ${check.broken.position}${check.broken.id === null ? ' (missing)' : `, entry ${check.broken.id}`}; ${check.checked} entries before it are whole${open}`,
          );
        if (check.broken) broken += 1;
      }
      if (tenants.length === 0) say('There are no audit entries.');
      return broken === 0 ? 0 : 1;
    },
  },
  'demo-data': {
    about:
      'demo-data [--print]: fills the inventory with an estate of 40 sites, or prints it as lines that an import takes',
    async run({ inventory }, args) {
      if (args.some((arg) => arg !== '--print')) return USAGE;
      if (args.length > 0) {
        for (const mutation of demoData())
          if (!process.stdout.write(`${JSON.stringify(mutation)}\n`))
            await once(process.stdout, 'drain');
        return 0;
      }
      const { items } = await inventory.records.list(
        systemCaller(PLATFORM, 'demo-data'),
        'prefixes',
        { fields: {} },
        { sort: undefined, after: undefined, limit: 1 },
      );
      if (items.length > 0) {
        say('There are prefixes already; the demo is for an empty inventory.');
        return 1;
      }
      const began = performance.now();
      const [caller, lines] = [systemCaller(PLATFORM, 'demo-data'), [...demoData()]];
      for (let at = 0; at < lines.length; at += DEMO_AT_ONCE) {
        await inventory.writes.apply(caller, lines.slice(at, at + DEMO_AT_ONCE), 'all');
      }
      const seconds = (performance.now() - began) / 1_000;
      say(
        `${lines.length} records were made in ${seconds.toFixed(1)} s, ${Math.round(lines.length / seconds)} a second.`,
      );
      return 0;
    },
  },
  reseal: {
    about: 'reseal: seals every stored secret under the first key of HOLDFAST_MASTER_KEYS',
    async run({ providers, webhooks }, args) {
      if (args.length > 0) return USAGE;
      const caller = systemCaller(PLATFORM, 'reseal');
      const count = (await providers.resealAll(caller)) + (await webhooks.resealAll(caller));
      say(
        `${count} secrets were sealed again. Keys after the first one are not needed any more when every process has the new order and ten minutes have passed.`,
      );
      return 0;
    },
  },
};

function usage(): number {
  process.stderr.write(
    `Commands:\n${Object.values(COMMANDS)
      .map(({ about }) => `  ${about}`)
      .join('\n')}\n`,
  );
  return USAGE;
}

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const command = COMMANDS[name];
  if (!command) return usage();
  const env = process.env.DATABASE_URL
    ? {}
    : await runningStack(path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast'));
  const config = readConfig({ ...env, ...process.env });
  const deps = compose(config, createLog(config.logLevel));
  try {
    const code = await command.run(deps, args);
    return code === USAGE ? usage() : code;
  } finally {
    await deps.stop();
  }
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(
      `${error instanceof ConfigError ? error.message : error instanceof Error ? `Failed: ${error.message}` : String(error)}\n`,
    );
    process.exit(1);
  },
);
