import { createEvents } from '../../services/events/events.ts';
import { createEventFeed } from '../../services/events/eventFeed.ts';
import { createFollowEvents } from '../../services/events/followEvents.ts';
import { createEventRelay } from '../../services/events/relay.ts';
import { createAutoDisable } from '../../services/webhooks/autoDisable.ts';
import { createDeliveries } from '../../services/webhooks/deliveries.ts';
import { createDeliveryQueue } from '../../services/webhooks/deliveryQueue.ts';
import { createWebhookReplays } from '../../services/webhooks/replays.ts';
import { createWebhookSecrets } from '../../services/webhooks/secrets.ts';
import { createWebhookSender } from '../../services/webhooks/sender.ts';
import { createSendEvent } from '../../services/webhooks/sendEvent.ts';
import { createFirstAttemptRecorder } from '../../services/webhooks/firstAttemptRecorder.ts';
import { createHealthRecorder } from '../../services/webhooks/health.ts';
import { createFirstAttempts } from '../../services/webhooks/firstAttempts.ts';
import { createTestDelivery } from '../../services/webhooks/testDelivery.ts';
import { createWebhooks } from '../../services/webhooks/webhooks.ts';
import type { Core } from './core.ts';

/** Builds events, webhooks and deliveries. */
export function composeWebhooks(core: Core) {
  const secrets = createWebhookSecrets(core.vault);
  const sendWebhook = createWebhookSender(core);
  const sendEvent = createSendEvent({ ...core, secrets, sendWebhook });
  const health = createHealthRecorder(core);
  const disable = createAutoDisable({ ...core, health });
  const deliveryQueue = createDeliveryQueue(core);
  const firstAttempts = createFirstAttempts({
    ...core,
    ...core.config,
    sendEvent,
    disable,
    recorder: createFirstAttemptRecorder({ ...core, health }),
  });
  const eventFeed = createEventFeed(core);
  const relay = createEventRelay({
    ...core,
    deliveryQueue,
    firstAttempts,
    onPublished: eventFeed.wake,
  });
  const followEvents = createFollowEvents({ ...core, feed: eventFeed });
  const webhooks = createWebhooks({ ...core, secrets });
  return {
    sendEvent,
    disable,
    health,
    deliveryQueue,
    firstAttempts,
    relay,
    eventFeed,
    events: createEvents({ ...core, relay, followEvents }),
    webhooks,
    testDelivery: createTestDelivery({ ...core, health, webhooks, secrets, sendWebhook }),
    webhookReplays: createWebhookReplays({ ...core, webhooks, relay }),
    deliveries: createDeliveries({ ...core, deliveryQueue }),
  };
}
