import { Type } from 'typebox';
import { defineJobType, type JobType } from '../../domain/jobs/jobType.ts';
import type { TargetKind } from '../../domain/jobs/targets.ts';

const about = (targets: TargetKind, name: string, access: JobType['access'] = 'open'): JobType =>
  defineJobType({
    name,
    access,
    summary: `Shows its ${targets}`,
    targets,
    payload: Type.Object({ note: Type.Optional(Type.String()) }, { additionalProperties: false }),
    lane: 'inline',
    timeoutMs: 5_000,
    run: (_, { target }) => Promise.resolve({ target }),
  });

const id = (resource: string) => Type.String({ 'x-holdfast-ref': resource });

const refers = defineJobType({
  name: 'test.refers',
  summary: 'Names records',
  payload: Type.Object(
    {
      site: Type.Optional(Type.Union([id('sites'), Type.Null()])),
      devices: Type.Optional(
        Type.Array(Type.String(), { 'x-holdfast-ref': 'devices', maxItems: 600 }),
      ),
    },
    { additionalProperties: false },
  ),
  lane: 'inline',
  timeoutMs: 5_000,
  run: (payload) => Promise.resolve(payload),
});

/** Types whose jobs are about a site or a device. Their result is the target. And one whose payload names records. */
export const targetTypes: readonly JobType[] = [
  about('site', 'test.site'),
  about('device', 'test.device'),
  about('device', 'test.granted', 'granted'),
  refers,
];
