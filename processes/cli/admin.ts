import type { Command } from './command.ts';
import { commandLine, print, readArguments, UsageError } from './program.ts';

const OPTIONS = { create: { type: 'boolean' }, promote: { type: 'boolean' } } as const;

export const admin: Command = {
  usage:
    'admin [user name] [--promote | --create]: resets the password of a local administrator, also of a user who becomes one with --promote, or creates one; prints a one-time password. Without a name: admin, which is created if there are no users',
  read(args) {
    const { values, words } = readArguments(args, { options: OPTIONS, words: 1 });
    const { create = false, promote = false } = values;
    if (create && promote) throw new UsageError('--create and --promote exclude each other');
    return async ({ bootstrapAdmin }) => {
      const login = await bootstrapAdmin.recover(words[0], { create, promote });
      const { username } = login;
      if ('refusal' in login) {
        print(REFUSALS[login.refusal](username));
        return 1;
      }
      print(
        login.account === 'new'
          ? 'The administrator was created.'
          : 'The password was reset. All sessions were revoked, and failed logins were cleared.',
      );
      print('');
      print(`User name          ${username}`);
      print(`One-time password  ${login.oneTimePassword}`);
      print('');
      print('The password must be changed at the first login, within 72 hours.');
      return 0;
    };
  },
};

const REFUSALS = {
  unknown: (username: string) => `There is no local user named ${username}; nothing was changed.
To create an administrator of this name: ${commandLine('admin', `${username} --create`)}`,
  exists: (username: string) => `There is a user named ${username} already; nothing was changed.
To reset the password of an administrator: ${commandLine('admin', username)}`,
  not_administrator: (username: string) => `${username} is not an administrator.
To make this user one: ${commandLine('admin', `${username} --promote`)}`,
};
