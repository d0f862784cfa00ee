import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { PublishedEvent } from '../../../domain/events/records.ts';
import { createEventTail } from '../../../services/events/eventTail.ts';

const NOW = 1_000_000;

const eventAt = (sequence: number, createdAt = NOW): PublishedEvent => ({
  id: `evt_${sequence}`,
  sequence,
  type: 'job.created',
  tenantId: 'acme',
  subjectType: 'job',
  subjectId: 'job_1',
  actorId: 'alice',
  data: {},
  createdAt: new Date(createdAt),
});
const newTail = (maxEvents = 5) => createEventTail({ maxEvents, maxAgeMs: 1_000, now: () => NOW });
const after = (tail: ReturnType<typeof newTail>, sequence: number) =>
  tail.after(sequence)?.map((event) => event.sequence);

test('has the newest events, and says when some that follow are not here', () => {
  const tail = newTail();
  tail.reset(3, [eventAt(2), eventAt(3)]);
  expect(after(tail, 0)).toBeUndefined();
  expect(after(tail, 1)).toEqual([2, 3]);
  tail.append([4, 5, 6, 7, 8].map((n) => eventAt(n)));
  expect(after(tail, 2)).toBeUndefined();
  expect(after(tail, 3)).toEqual([4, 5, 6, 7, 8]);
  expect(after(tail, 8)).toEqual([]);
  expect(after(tail, 20)).toEqual([]);
  expect(tail.head()).toBe(8);
});

test('has nothing from before a gap, where a purge has deleted events', () => {
  const tail = newTail();
  tail.reset(9, [eventAt(5), eventAt(6), eventAt(8), eventAt(9)]);
  expect(after(tail, 6)).toBeUndefined();
  expect(after(tail, 7)).toEqual([8, 9]);
  tail.reset(9, [eventAt(5), eventAt(8)]);
  expect(after(tail, 8)).toBeUndefined();
  expect(after(tail, 9)).toEqual([]);
});

test('keeps nothing that is old', () => {
  const tail = newTail();
  tail.reset(3, [eventAt(1, 0), eventAt(2, NOW), eventAt(3, 0)]);
  expect(after(tail, 0)).toBeUndefined();
  expect(after(tail, 1)).toEqual([2, 3]);
});

test('a follower that reads the log where the tail has it no longer gets each event once', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ publish: fc.integer({ min: 1, max: 8 }) }),
      fc.record({ read: fc.boolean() }),
    ),
  );
  fc.assert(
    fc.property(steps, (all) => {
      const tail = newTail();
      const log: number[] = [];
      const seen: number[] = [];
      const read = () => {
        const position = seen.at(-1) ?? 0;
        seen.push(...(after(tail, position) ?? log.filter((sequence) => sequence > position)));
      };
      for (const step of all) {
        if ('read' in step) read();
        else {
          const newer = Array.from({ length: step.publish }, (_, n) => log.length + n + 1);
          log.push(...newer);
          tail.append(newer.map((n) => eventAt(n)));
        }
      }
      read();
      expect(seen).toEqual(log);
    }),
  );
});
