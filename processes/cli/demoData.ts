import { once } from 'node:events';
import { PLATFORM } from '../../domain/access/scope.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { pageOf } from '../../domain/shared/lists.ts';
import type { Composition } from '../composition/index.ts';
import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';
import { demoEstate } from './demoEstate.ts';
import { counted } from '../../domain/shared/counted.ts';

/** Mutations in one transaction. */
const BATCH_SIZE = 500;

const caller = systemCaller(PLATFORM, 'demo-data');

export const demoData: Command = {
  usage:
    'demo-data [--print]: fills an empty inventory with an estate of 40 sites, or prints it as JSON lines for an import',
  usesDatabase: (args) => !args.includes('--print'),
  read(args) {
    const { values } = readArguments(args, { options: { print: { type: 'boolean' } } });
    return async ({ inventory }) => {
      if (values.print) {
        await printLines();
        return 0;
      }
      if (await hasPrefixes(inventory)) {
        print('The inventory already has prefixes. Demo data needs an empty inventory.');
        return 1;
      }
      await fill(inventory);
      return 0;
    };
  },
};

async function printLines(): Promise<void> {
  for (const mutation of demoEstate()) {
    const flushed = process.stdout.write(`${JSON.stringify(mutation)}\n`);
    if (!flushed) await once(process.stdout, 'drain');
  }
}

async function hasPrefixes({ records }: Composition['inventory']): Promise<boolean> {
  const { items } = await records.list(caller, 'prefixes', {}, pageOf(1));
  return items.length > 0;
}

async function fill({ writes }: Composition['inventory']): Promise<void> {
  const startedAt = performance.now();
  const mutations = [...demoEstate()];
  for (let offset = 0; offset < mutations.length; offset += BATCH_SIZE) {
    await writes.apply(caller, mutations.slice(offset, offset + BATCH_SIZE), 'all');
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const rate = Math.round(mutations.length / seconds);
  print(`Created ${counted(mutations.length, 'record')} in ${seconds.toFixed(1)} s (${rate}/s).`);
}
