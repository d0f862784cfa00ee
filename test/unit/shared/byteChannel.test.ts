import { expect, test } from '@jest/globals';
import { MessageChannel } from 'node:worker_threads';
import { ChannelClosed, createByteSender, receiveBytes } from '../../../platform/byteChannel.ts';

test('bytes arrive in order, and the sender waits for a slow receiver', async () => {
  const { port1, port2 } = new MessageChannel();
  const sender = createByteSender(port1);
  const shared = Buffer.from('0123456789');
  let sent = 0;
  const sending = (async () => {
    for (; sent < 30; sent++) await sender.write(shared.subarray(sent % 10, (sent % 10) + 1));
    sender.mark(7);
    sender.end();
  })();
  const marks: number[] = [];
  let received = '';
  let ahead = 0;
  for await (const bytes of receiveBytes(port2, (mark) => marks.push(mark))) {
    received += Buffer.from(bytes).toString();
    ahead = Math.max(ahead, sent - received.length);
  }
  await sending;
  port1.close();
  expect([received, marks]).toEqual(['0123456789'.repeat(3), [7]]);
  expect(ahead).toBeLessThan(10);
  expect(shared.toString()).toBe('0123456789');
});

test('a closed channel ends the receiver and refuses the sender, also while it waits', async () => {
  const { port1, port2 } = new MessageChannel();
  const sender = createByteSender(port1);
  const sending = (async () => {
    for (;;) await sender.write(Buffer.from('x'));
  })();
  const refused = expect(sending).rejects.toThrow(ChannelClosed);
  const receiver = receiveBytes(port2);
  await receiver.next();
  port2.close();
  await refused;
  const other = new MessageChannel();
  other.port1.close();
  expect(await receiveBytes(other.port2).next()).toMatchObject({ done: true });
});
