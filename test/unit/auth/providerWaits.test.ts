import { expect, test } from '@jest/globals';
import { createProviderWaits } from '../../../services/auth/providers/waits.ts';

test('the logins that wait for a provider are limited, in all and from an address', async () => {
  const { promise: answer, resolve: release } = Promise.withResolvers<undefined>();
  const waits = createProviderWaits();
  const accepted: Promise<unknown>[] = [];
  const enter = (address: string, count: number) => {
    for (let n = 0; n < count; n++) accepted.push(waits.run('idp_1', address, () => answer));
  };
  const refused = (address: string) =>
    expect(waits.run('idp_1', address, () => answer)).rejects.toMatchObject({
      code: 'too_many_requests',
      extra: { retryAfterSeconds: 2 },
    });
  enter('192.0.2.1', 15);
  await refused('192.0.2.1');
  for (const n of [2, 3]) enter(`192.0.2.${n}`, 15);
  enter('192.0.2.4', 5);
  await refused('192.0.2.5');
  expect(await waits.run('idp_2', '192.0.2.1', () => Promise.resolve('other'))).toBe('other');
  release(undefined);
  await Promise.all(accepted);
  expect(await waits.run('idp_1', '192.0.2.1', () => Promise.resolve('again'))).toBe('again');
});
