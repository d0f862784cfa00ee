import { PLATFORM } from '../../domain/access/scope.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';
import { counted } from '../../domain/shared/counted.ts';

export const reencryptSecrets: Command = {
  usage:
    'reencrypt-secrets: encrypts every stored secret with the first key of HOLDFAST_MASTER_KEYS',
  read(args) {
    readArguments(args);
    return async ({ providers, webhooks, secrets }) => {
      const caller = systemCaller(PLATFORM, 'reencrypt-secrets');
      let reencrypted = 0;
      const unreadable: string[] = [];
      for (const kind of [providers, webhooks, secrets]) {
        const done = await kind.reencryptSecrets(caller);
        reencrypted += done.reencrypted;
        unreadable.push(...done.unreadable);
      }
      print(`Encrypted again: ${counted(reencrypted, 'secret')}.`);
      if (unreadable.length > 0) {
        print(
          'No key of HOLDFAST_MASTER_KEYS opens secrets of these records, which stay as they are:',
        );
        for (const id of unreadable) print(`  ${id}`);
        print('Add their key and run the command again, or set these secrets again.');
        return 1;
      }
      print('Keep the other keys: archives and artifacts that were made with them need them.');
      print('docs/access.md, "Replacing the master key", says when a key can be removed.');
      return 0;
    };
  },
};
