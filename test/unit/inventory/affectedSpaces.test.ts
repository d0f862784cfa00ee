import { expect, test } from '@jest/globals';
import type { Planned } from '../../../domain/inventory/planning.ts';
import { planLocked } from '../../../services/inventory/affectedSpaces.ts';
import { plannedChange } from '../../support/planned.ts';

/** A plan of new prefixes, one in each VRF. */
const planIn = (vrfs: readonly string[]): { planned: Planned[] } => ({
  planned: vrfs.map((vrfId, i) =>
    plannedChange({
      resource: 'prefixes',
      id: `pfx_${i}`,
      before: null,
      after: { id: `pfx_${i}`, version: 1, vrfId, tenantId: 'red', createdAt: '', updatedAt: '' },
    }),
  ),
});

/** Runs the plans one after the other; the last is repeated. Returns what was locked each time. */
async function locksOf(...plans: readonly (readonly string[])[]) {
  const locks: string[][] = [];
  let made = 0;
  const result = await planLocked(
    new Set(['vrf_1 red']),
    () => Promise.resolve(planIn(plans[Math.min(made++, plans.length - 1)] ?? [])),
    (spaces) => Promise.resolve(void locks.push([...spaces])),
  );
  return { locks, made, result };
}

test('a plan is made again with the locks of the spaces that it found', async () => {
  expect(await locksOf(['vrf_1'])).toMatchObject({ locks: [], made: 1 });
  const { locks, made, result } = await locksOf(['vrf_2', 'vrf_1'], ['vrf_3', 'vrf_2']);
  expect([locks, made]).toEqual([[['vrf_2 red'], ['vrf_3 red']], 3]);
  expect(result).toEqual(planIn(['vrf_3', 'vrf_2']));
});

test('and ends when there are too many spaces, or always others', async () => {
  const many = Array.from({ length: 1_000 }, (_, i) => `vrf_${i + 2}`);
  await expect(locksOf(many)).rejects.toMatchObject({ code: 'limit_reached' });
  await expect(locksOf(many.slice(1))).resolves.toMatchObject({ made: 2 });
  const others = many.slice(0, 10).map((vrf) => [vrf]);
  await expect(locksOf(...others)).rejects.toMatchObject({ code: 'conflict' });
});
