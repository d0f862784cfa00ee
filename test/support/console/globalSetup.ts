import { buildConsole } from '../../../ui/build.ts';
import startServers from '../globalSetup.ts';

/** Builds the console, and starts the servers. */
export default async function globalSetup(): Promise<void> {
  await Promise.all([buildConsole(), startServers()]);
}
