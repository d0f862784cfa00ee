import { servers } from './servers.ts';

export default async function globalTeardown(): Promise<void> {
  await servers.stopAll();
}
