import { describe, expect, test } from '@jest/globals';
import {
  EVENT_DATA,
  SUPPORTED_EVENT_TYPES,
  type EventType,
} from '../../../domain/events/events.ts';
import { exampleMessage } from '../../../domain/events/examples.ts';
import { eventSummary } from '../../../domain/events/summaries.ts';
import { compileCheck } from '../../../platform/schemaCheck.ts';

const TYPES = SUPPORTED_EVENT_TYPES as readonly EventType[];

describe('the catalogue of event types', () => {
  test('has an example of each type that its schema allows', () => {
    const faults = TYPES.flatMap((type) => {
      const { data } = exampleMessage(type) as { data: object };
      const found = compileCheck(EVENT_DATA[type])(data).map(
        ({ pointer, message }) => `${type}${pointer} ${message}`,
      );
      return JSON.stringify(data).includes('"text"')
        ? [...found, `${type} has no real value`]
        : found;
    });
    expect(faults).toEqual([]);
  });

  test('shows what the type is about', () => {
    expect(exampleMessage('job.failed')).toMatchObject({
      type: 'job.failed',
      data: { jobId: expect.stringMatching(/^job_\w{26}$/), status: 'failed', error: 'timed_out' },
    });
    expect(exampleMessage('job.succeeded')).toMatchObject({
      data: { status: 'succeeded', error: null },
    });
  });

  test('says of each type when it is emitted', () => {
    for (const type of TYPES) expect(eventSummary(type)).toMatch(/^[A-Z].{10,}\.$/);
    expect(eventSummary('inventory.ip-address.updated')).toBe('An IP address was changed.');
    expect(eventSummary('inventory.device.deleted')).toBe('A device was deleted.');
    expect(eventSummary('inventory.vlan-group.created')).toBe('A VLAN group was created.');
  });
});
