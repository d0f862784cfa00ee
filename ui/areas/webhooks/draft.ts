import type { Schemas } from '../../app/api.ts';
import { MAX_ATTEMPTS, type RetryPolicy } from './webhookText.ts';

/** What the form of a webhook holds. Numbers that are being typed may be empty. */
export type WebhookDraft = {
  endpointUrl: string;
  description: string;
  eventTypes: string[];
  maxAttempts: number | '';
  maxIntervalSeconds: number | '';
};

export const ALL_TYPES = '*';

export const LONGEST_WAIT_SECONDS = 86_400;

export const newDraft: WebhookDraft = {
  endpointUrl: '',
  description: '',
  eventTypes: [],
  maxAttempts: MAX_ATTEMPTS,
  maxIntervalSeconds: LONGEST_WAIT_SECONDS,
};

type Record = Pick<WebhookDraft, 'endpointUrl' | 'description' | 'eventTypes'> & {
  retryPolicy: RetryPolicy;
};

export const draftOf = ({
  endpointUrl,
  description,
  eventTypes,
  retryPolicy,
}: Record): WebhookDraft => ({ endpointUrl, description, eventTypes, ...retryPolicy });

/** What the form sends. An empty number is the one of the service. */
export const requestOf = ({
  endpointUrl,
  description,
  eventTypes,
  maxAttempts,
  maxIntervalSeconds,
}: WebhookDraft) => ({
  endpointUrl: endpointUrl.trim(),
  description: description.trim(),
  // They are of the catalogue of the server.
  eventTypes: eventTypes as Schemas['SubscribedEventType'][],
  retryPolicy: {
    maxAttempts: maxAttempts === '' ? MAX_ATTEMPTS : maxAttempts,
    maxIntervalSeconds: maxIntervalSeconds === '' ? LONGEST_WAIT_SECONDS : maxIntervalSeconds,
  },
});
