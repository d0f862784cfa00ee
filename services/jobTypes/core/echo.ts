import { Type, type Static } from 'typebox';
import { defineJobType } from '../../../domain/jobs/jobType.ts';

const Payload = Type.Object(
  {},
  { additionalProperties: true, description: 'Any JSON object; it comes back as the result.' },
);

/** Returns its payload, to check that jobs run. */
export const coreEcho = defineJobType<Static<typeof Payload>>({
  name: 'core.echo',
  summary: 'Returns its payload',
  payload: Payload,
  lane: 'inline',
  timeoutMs: 5_000,
  run: (payload, { log }) => {
    log('info', 'Echoed the payload', { keys: Object.keys(payload).slice(0, 50) });
    return Promise.resolve({ ...payload });
  },
});
