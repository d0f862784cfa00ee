import { Type } from 'typebox';
import { defineJobType, type JobType } from '../../domain/jobs/jobType.ts';
import type { TargetKind } from '../../domain/jobs/targets.ts';

const about = (targets: TargetKind, name: string): JobType =>
  defineJobType({
    name,
    summary: `Shows its ${targets}`,
    targets,
    payload: Type.Object({ note: Type.Optional(Type.String()) }, { additionalProperties: false }),
    lane: 'inline',
    timeoutMs: 5_000,
    run: (_, { target }) => Promise.resolve({ target }),
  });

/** Types whose jobs are about a site or a device. Their result is the target. */
export const targetTypes: readonly JobType[] = [
  about('site', 'test.site'),
  about('device', 'test.device'),
];
