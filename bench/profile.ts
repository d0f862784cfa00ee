import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../dev/freePort.ts';
import { startEndpoint, waitForArrivals } from './events/endpoint.ts';
import { ROOT, startBenchEnvironment, startProduct } from './fixture.ts';
import { openApi, vrf } from './inventory/api.ts';
import { drawFlames, type Profile } from './profile/flames.ts';
import { connectProfiler } from './profile/profiler.ts';
import type { BenchResult } from './report.ts';

/** More than in the benchmarks: a profile of code that is not compiled yet shows the compiler. */
const WARM_UP = 600;
const CREATES = 800;

const cidr = (n: number) => `10.${n >> 8}.${n & 255}.0/24`;

/**
 * Draws where the main thread of the product spends its time: `docs/flames-create.svg` for creates of
 * prefixes one after the other, `docs/flames-create-webhook.svg` for the same while a webhook matches.
 */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const endpoint = await startEndpoint();
  const port = await freePort(0);
  const product = await startProduct(environment, [`--inspect=127.0.0.1:${port}`]);
  const { api, close } = openApi(product.ready, 1);
  const profiler = await connectProfiler(port);
  const createMany = async (count: number) => {
    const vrfId = await vrf(api, `profile ${Math.random()}`);
    for (let n = 0; n < count; n++) await api('POST', 'prefixes', { cidr: cidr(n), vrfId });
  };
  try {
    const draw = async (name: string, title: string) => {
      const profile: Profile = await profiler.record(() => createMany(CREATES));
      await writeFile(
        path.join(ROOT, 'docs', `${name}.svg`),
        drawFlames(profile, { title, per: CREATES }),
      );
    };
    await createMany(WARM_UP);
    await draw('flames-create', 'Create of a prefix');
    const webhook = {
      endpointUrl: endpoint.url('/profile'),
      eventTypes: ['inventory.prefix.created'],
    };
    await api('POST', '/api/webhooks', webhook, { 'x-service-tenant-id': 'platform' });
    await createMany(WARM_UP);
    await waitForArrivals(endpoint.arrivals, WARM_UP);
    await sleep(1_000);
    await draw('flames-create-webhook', 'Create of a prefix while a webhook matches');
    return [];
  } finally {
    // A process waits for its debugger before it ends.
    profiler.close();
    await close();
    await product.stop();
    await endpoint.stop();
    await environment.stop();
  }
}
