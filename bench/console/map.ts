import type { Page } from 'playwright-core';
import { quantile } from '../report.ts';
import type { Installation } from './installation.ts';

/** Prefixes of a map: as many large ones, each with as many others in it. */
const LARGE = 100;
const IN_EACH = 99;
const BATCH_SIZE = 1_000;
const OPENINGS = 5;
const FRAMES = 180;

type PrefixRecord = { cidr: string; status: string };

/** 10,000 prefixes in a network of each family. */
function prefixesOf(family: 4 | 6): PrefixRecord[] {
  const statuses = ['active', 'reserved', 'deprecated', 'container'];
  const network = (large: number, small: number | undefined): string => {
    if (family === 4)
      return small === undefined ? `10.${large}.0.0/16` : `10.${large}.${small}.0/24`;
    const hex = (large * 256 + (small ?? 0)).toString(16);
    return small === undefined ? `2001:db8:${hex}::/40` : `2001:db8:${hex}::/48`;
  };
  return [
    { cidr: family === 4 ? '10.0.0.0/8' : '2001:db8::/32', status: 'container' },
    ...Array.from({ length: LARGE }, (_, large) => [
      { cidr: network(large, undefined), status: 'container' },
      ...Array.from({ length: IN_EACH }, (_each, small) => ({
        cidr: network(large, small),
        status: statuses[small % statuses.length] ?? 'active',
      })),
    ]).flat(),
  ];
}

/** Stores the prefixes of both maps in a VRF of their own. Returns its id. */
async function createPrefixes({ send }: Installation): Promise<string> {
  const { id } = await send<{ id: string }>('/api/inventory/vrfs', { name: 'map' });
  const records = [...prefixesOf(4), ...prefixesOf(6)];
  for (let at = 0; at < records.length; at += BATCH_SIZE) {
    const mutations = records.slice(at, at + BATCH_SIZE).map((record) => ({
      ...{ resource: 'prefixes', operation: 'create' },
      record: { ...record, vrfId: id },
    }));
    await send('/api/inventory/bulk', { mode: 'all', mutations });
  }
  return id;
}

/** Runs in the page: magnifies and moves the map for a number of frames. Returns the time of each. */
const MOVE = `async (frames) => {
  const canvas = document.querySelector('canvas');
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const at = (n) => ({ clientX: left + width / 2 + (n % 60), clientY: top + height / 2, bubbles: true });
  const pointer = { pointerId: 1, button: 0 };
  canvas.setPointerCapture = () => undefined;
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  canvas.dispatchEvent(new PointerEvent('pointerdown', { ...at(0), ...pointer }));
  for (let n = 0; n < frames; n += 1) {
    const deltaY = n % 90 < 45 ? -40 : 40;
    canvas.dispatchEvent(new WheelEvent('wheel', { ...at(n), deltaY, cancelable: true }));
    canvas.dispatchEvent(new PointerEvent('pointermove', { ...at(n), ...pointer }));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  canvas.dispatchEvent(new PointerEvent('pointerup', { ...at(0), ...pointer }));
  return times;
}`;

type MapReport = { network: string; prefixes: number; openMs: number; frameMs: number[] };

/** Opens a map from the list of prefixes, some times, and moves it. */
async function watchMap(page: Page, vrf: string, network: string): Promise<MapReport> {
  const address = `/inventory/prefixes/space?vrf=${vrf}&at=${encodeURIComponent(network)}`;
  const map = page.getByRole('application', { name: `Map of ${network}` });
  const times: number[] = [];
  for (let n = 0; n < OPENINGS; n++) {
    await page.goto(address);
    await map.waitFor();
    await page.getByRole('link', { name: 'List of prefixes' }).click();
    await page.getByRole('link', { name: 'Tree and map' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Tree and map' }).waitFor();
    // The list itself is another measure: its rows are there, and nothing else is to be drawn.
    await page.getByRole('row').nth(1).waitFor();
    await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
    await page.evaluate('new Promise((resolve) => requestIdleCallback(resolve))');
    const startedAt = performance.now();
    await page.evaluate(
      `history.pushState({}, '', '${address}'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await map.waitFor();
    times.push(performance.now() - startedAt);
  }
  const frameMs = await page.evaluate<number[]>(`(${MOVE})(${FRAMES})`);
  return { network, prefixes: LARGE * (IN_EACH + 1), openMs: quantile(times, 0.5), frameMs };
}

/** Opens and moves maps of 10,000 prefixes: in a /8 of IPv4, and in a /32 of IPv6. */
export async function watchMaps(installation: Installation, page: Page): Promise<MapReport[]> {
  const vrf = await createPrefixes(installation);
  return [await watchMap(page, vrf, '10.0.0.0/8'), await watchMap(page, vrf, '2001:db8::/32')];
}
