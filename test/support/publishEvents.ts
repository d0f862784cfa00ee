import type { Knex } from '../../db/core/knex.ts';
import { publishEvents } from '../../db/events/publish.ts';

/** Publishes committed events and adds all their deliveries, as the loop of a running process does. */
export async function publishWithDeliveries(db: Knex): Promise<void> {
  for (let areLeft = true; areLeft;) {
    const batch = await publishEvents(db, { limit: 500, maxDeliveries: 1_000 });
    areLeft = batch.areLeft || batch.types.length > 0;
  }
}
