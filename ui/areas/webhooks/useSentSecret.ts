import { useState } from 'react';
import { useIdempotencyKeys, type KeyHeader } from '../../app/idempotency.ts';
import { useSend } from '../../app/useSend.ts';

/**
 * Sends what makes a secret. The secret is in `made` only, and is forgotten with the page: the cache of the query
 * client never has it. A repeat after an outage has the same idempotency key.
 */
export function useSentSecret<Body, Made>(
  request: (body: Body, header: KeyHeader) => Promise<Made>,
) {
  const keys = useIdempotencyKeys();
  const [made, setMade] = useState<Made>();
  const { send, busy, problem } = useSend();
  return {
    made,
    busy,
    problem,
    send: (body: Body): Promise<boolean> =>
      send(async () => setMade(await keys.once(body, (header) => request(body, header)))),
  };
}
