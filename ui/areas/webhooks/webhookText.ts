import { DAY_MS } from '../../../domain/shared/durations.ts';
import { formatDuration, formatNumberOf } from '../../parts/format.ts';
import { ownValue } from '../../parts/ownValue.ts';
import type { Tone } from '../../parts/statuses.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Named = { description: string; endpointUrl: string };
type State = {
  enabled: boolean;
  failingSince: string | null;
  disabledReason: string | null;
};

/** The host of an endpoint: its path and query may contain secrets. */
export const hostOf = (url: string): string => URL.parse(url)?.host ?? url;

/** What a webhook is called: its description, or the host of its endpoint. */
export const nameOf = ({ description, endpointUrl }: Named): string =>
  description === '' ? hostOf(endpointUrl) : description;

/** How a webhook is, as status, and in words where the status does not say it. */
export type Health = { status: string; label?: string; tone?: Tone };

const DISABLED: Readonly<Record<string, string>> = {
  endpoint_removed: 'Endpoint removed',
  failing: 'Disabled: it failed',
};

/**
 * How a webhook is. `last` is the status of its newest delivery, or null if it has none: only what an endpoint
 * has accepted shows that it works.
 */
export function healthOf(
  { enabled, failingSince, disabledReason }: State,
  last: string | null,
): Health {
  if (!enabled) {
    const label = DISABLED[disabledReason ?? ''];
    return label === undefined ? { status: 'disabled' } : { status: 'failing', label, tone: 'bad' };
  }
  if (failingSince !== null) return { status: 'failing' };
  if (last === 'succeeded') return { status: 'working' };
  return last === null
    ? { status: 'planned', label: 'No delivery yet' }
    : { status: 'enabled', tone: 'neutral' };
}

const FAILING_LIMIT_MS = 5 * DAY_MS;

/** When a webhook that fails is disabled, if its endpoint accepts nothing until then. */
export const disabledAtLast = (failingSince: string): Date =>
  new Date(Date.parse(failingSince) + FAILING_LIMIT_MS);

export type RetryPolicy = { maxAttempts: number; maxIntervalSeconds: number };

/** The retry plan of the service in seconds, which a webhook can shorten. */
const PLAN = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
export const MAX_ATTEMPTS = PLAN.length + 1;

/** The retry plan of a webhook in words. */
export function retriesText({ maxAttempts, maxIntervalSeconds }: RetryPolicy): string {
  if (maxAttempts <= 1) return 'One attempt, no retries';
  const waits = PLAN.slice(0, maxAttempts - 1).map((seconds) =>
    formatDuration(Math.min(seconds, maxIntervalSeconds) * 1_000),
  );
  return `${formatNumberOf(maxAttempts, 'attempt')}; the waits are ${waits.join(', ')}, each up to 10 % longer`;
}

/** The types that a webhook subscribes to, in a few words. */
export function typesText(types: readonly string[]): string {
  if (types.includes('*')) return 'All event types';
  const [first = '', second] = types;
  if (second === undefined) return first;
  return types.length === 2 ? `${first}, ${second}` : `${first} and ${types.length - 1} more`;
}

type Entry = { action: string; outcome: string; before: object | null; after: object | null };

const fieldsOf = (value: object | null): Readonly<Record<string, unknown>> => ({ ...value });

const ACTIONS: Readonly<Record<string, string>> = {
  'webhook.create': 'Created',
  'webhook.delete': 'Deleted',
  'webhook.rotate_secret': 'Secret rotated',
  'webhook.reencrypt_secrets': 'Secret encrypted with another master key',
};

/** What a change has changed, in words. */
const CHANGES: Readonly<Record<string, string>> = {
  eventTypes: 'event types',
  description: 'description',
  retryPolicy: 'retries',
};

function updateText(before: Readonly<Record<string, unknown>>, after: typeof before): string {
  const isOther = (name: string) => JSON.stringify(before[name]) !== JSON.stringify(after[name]);
  const parts = [
    isOther('enabled') && (after.enabled === true ? 'enabled' : 'disabled'),
    after.secretChanged === true && 'secret rotated',
    // Earlier entries have the origin only.
    (after.endpointChanged === true || isOther('endpointOrigin')) && 'endpoint changed',
    ...Object.entries(CHANGES).map(([name, text]) => isOther(name) && `${text} changed`),
  ].filter((text) => typeof text === 'string');
  const text = parts.join(', ') || 'changed';
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const DISABLED_TEXTS: Readonly<Record<string, string>> = {
  endpoint_removed: 'Disabled, since the endpoint answered 410',
  failing: 'Disabled, since every attempt failed for five days',
};

const disabledText = (reason: unknown): string =>
  ownValue(DISABLED_TEXTS, String(reason)) ?? `Disabled: ${String(reason)}`;

/** An entry of the audit log about a webhook, in words. */
export function historyText({ action, outcome, before, after }: Entry): string {
  if (outcome !== 'done') return `${action}: ${outcome}`;
  const [old, present] = [fieldsOf(before), fieldsOf(after)];
  switch (action) {
    case 'webhook.update':
      return updateText(old, present);
    case 'webhook.test':
      return `Tested: ${String(present.error ?? present.httpStatus)}`;
    case 'webhook.disable':
      return disabledText(present.disabledReason);
    case 'webhook.cancel_deliveries':
      return `${String(present.deliveries)} pending deliveries cancelled`;
    default:
      return ACTIONS[action] ?? action;
  }
}
