import { PLATFORM } from '../../domain/access/scope.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';

export const reencryptSecrets: Command = {
  usage:
    'reencrypt-secrets: encrypts every stored secret with the first key of HOLDFAST_MASTER_KEYS',
  read(args) {
    readArguments(args);
    return async ({ providers, webhooks, secrets }) => {
      const caller = systemCaller(PLATFORM, 'reencrypt-secrets');
      const ofProviders = await providers.reencryptSecrets(caller);
      const ofWebhooks = await webhooks.reencryptSecrets(caller);
      const named = await secrets.reencryptSecrets(caller);
      print(`${ofProviders + ofWebhooks + named} secrets were encrypted again.`);
      print('Keep the other keys: archives and artifacts that were made with them need them.');
      print('docs/access.md, "Replacing the master key", says when a key can be removed.');
      return 0;
    };
  },
};
