import { buildConsole } from '../../../ui/build.ts';
import startServers from '../globalSetup.ts';

/** Builds the console, and starts the servers unless another group of tests has done so. */
export default async function globalSetup(): Promise<void> {
  const areServersRunning = process.env.TEST_POSTGRES_URL !== undefined;
  await Promise.all([buildConsole(), areServersRunning ? undefined : startServers()]);
}
