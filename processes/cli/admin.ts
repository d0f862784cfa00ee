import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';

export const admin: Command = {
  usage:
    'admin [user name] [--promote]: creates a local administrator, or resets the password of one; prints a one-time password',
  read(args) {
    const { values, words } = readArguments(args, {
      options: { promote: { type: 'boolean' } },
      words: 1,
    });
    const [username] = words;
    return async ({ bootstrapAdmin }) => {
      const login = await bootstrapAdmin.recover(username, values.promote);
      if (!login) {
        print(`${username} is not an administrator.`);
        print(`To make this user one: npm run admin -- ${username} --promote`);
        return 1;
      }
      print(
        login.account === 'new'
          ? 'The administrator was created.'
          : 'The password was reset. All sessions were revoked, and failed logins were cleared.',
      );
      print('');
      print(`User name          ${login.username}`);
      print(`One-time password  ${login.oneTimePassword}`);
      print('');
      print('The password must be changed at the first login.');
      return 0;
    };
  },
};
