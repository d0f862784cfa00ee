import { describe, expect, test } from '@jest/globals';
import { groupTypes, withTypes } from '../../../ui/app/typeGroups.ts';
import { fieldsOf } from '../../../ui/areas/events/dataFields.ts';
import { dataText, newText } from '../../../ui/areas/events/eventText.ts';
import {
  disabledAtLast,
  healthOf,
  historyText,
  nameOf,
  retriesText,
  typesText,
} from '../../../ui/areas/webhooks/webhookText.ts';

const WORKS = { enabled: true, failingSince: null, disabledReason: null };
const SINCE = '2026-11-21T09:00:00.000Z';

describe('a webhook', () => {
  test('works only if its endpoint has accepted its newest delivery', () => {
    expect(healthOf(WORKS, 'succeeded').status).toBe('working');
    expect(healthOf(WORKS, null).label).toBe('No delivery yet');
    expect(healthOf(WORKS, 'pending').status).toBe('enabled');
    expect(healthOf({ ...WORKS, failingSince: SINCE }, 'succeeded').status).toBe('failing');
  });

  test('that is disabled says why', () => {
    const disabled = { ...WORKS, enabled: false, failingSince: SINCE };
    expect(healthOf({ ...disabled, disabledReason: 'request' }, null)).toEqual({
      status: 'disabled',
    });
    expect(healthOf({ ...disabled, disabledReason: 'failing' }, null)).toMatchObject({
      label: 'Disabled: it failed',
      tone: 'bad',
    });
    expect(disabledAtLast(SINCE).toISOString()).toBe('2026-11-26T09:00:00.000Z');
  });

  test('is called by its description, or by the host of its endpoint', () => {
    const endpointUrl = 'https://hooks.example.net:8443/secret?key=1';
    expect(nameOf({ description: '', endpointUrl })).toBe('hooks.example.net:8443');
    expect(nameOf({ description: 'Alerts', endpointUrl })).toBe('Alerts');
  });

  test('has a retry plan and types in words', () => {
    expect(retriesText({ maxAttempts: 1, maxIntervalSeconds: 60 })).toBe('One attempt, no retries');
    expect(retriesText({ maxAttempts: 4, maxIntervalSeconds: 600 })).toBe(
      '4 attempts; the waits are 5 s, 5 min, 10 min, each up to 10 % longer',
    );
    expect(typesText(['*'])).toBe('All event types');
    expect(typesText(['a.b', 'c.d', 'e.f'])).toBe('a.b and 2 more');
  });

  test('has a history in words', () => {
    const entry = (action: string, before: object | null, after: object | null) =>
      historyText({ action, outcome: 'done', before, after });
    expect(
      entry(
        'webhook.update',
        { enabled: false, description: 'a' },
        { enabled: true, description: 'b' },
      ),
    ).toBe('Enabled, description changed');
    expect(entry('webhook.update', {}, { secretChanged: true })).toBe('Secret rotated');
    const origin = { endpointOrigin: 'https://hooks.example.net' };
    expect(entry('webhook.update', origin, { ...origin, endpointChanged: true })).toBe(
      'Endpoint changed',
    );
    expect(entry('webhook.update', origin, { endpointOrigin: 'https://example.net' })).toBe(
      'Endpoint changed',
    );
    expect(entry('webhook.test', null, { httpStatus: 204, error: null })).toBe('Tested: 204');
    expect(
      historyText({ action: 'webhook.update', outcome: 'denied', before: null, after: null }),
    ).toBe('webhook.update: denied');
  });
});

describe('event types', () => {
  test('are grouped by what they are about, and chosen together', () => {
    const types = ['job.created', 'job.failed', 'workflow.created'].map((type) => ({
      type,
      summary: '',
    }));
    expect(groupTypes(types).map(({ label, types: own }) => [label, own.length])).toEqual([
      ['Job', 2],
      ['Approval requests', 1],
    ]);
    expect(withTypes(['job.failed'], ['job.created', 'job.failed'], true)).toEqual([
      'job.created',
      'job.failed',
    ]);
    expect(withTypes(['a.b', 'job.failed'], ['job.created', 'job.failed'], false)).toEqual(['a.b']);
  });

  test('have their fields in words, also those of objects in them', () => {
    expect(
      fieldsOf({
        type: 'object',
        required: ['source', 'error'],
        properties: {
          source: {
            type: 'object',
            required: ['kind'],
            properties: { kind: { enum: ['api', 'schedule'] } },
          },
          error: { anyOf: [{ type: 'string', description: 'A code.' }, { type: 'null' }] },
          at: { type: 'string', format: 'date-time' },
        },
      }),
    ).toEqual([
      { name: 'source', value: 'object', description: '' },
      { name: 'source.kind', value: 'api, schedule', description: '' },
      { name: 'error', value: 'text or null', description: 'A code.' },
      { name: 'at', value: 'time, or missing', description: '' },
    ]);
  });
});

test('the data of an event in a line has no ids and nothing that is not set', () => {
  expect(dataText({ jobId: 'job_1', type: 'core.echo', error: null, changed: ['name'] })).toBe(
    'type: core.echo · changed: ["name"]',
  );
  expect(newText({ value: 12, exact: true })).toBe('12 new');
  expect(newText({ value: 10_000, exact: false })).toBe('more than 10,000 new');
});
