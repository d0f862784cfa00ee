import { Type, type Static } from 'typebox';
import {
  ARCHIVE_JOB,
  DEFAULT_ARCHIVE_DAYS,
  MAX_ARCHIVE_DAYS,
} from '../../../domain/audit/archives.ts';
import { defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import type { AuditArchiver } from '../../audit/archiver.ts';
import { asJobFailure } from '../../backups/archives.ts';
import { STEP_RETRY, STEP_TIMEOUT_MS } from '../backups/create.ts';

const Payload = Type.Object(
  {
    olderThanDays: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_ARCHIVE_DAYS,
        description:
          'Archives the whole months (UTC) in which all entries are older. ' +
          `Default: ${DEFAULT_ARCHIVE_DAYS}.`,
      }),
    ),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

export type AuditArchiveDeps = { auditArchiver: AuditArchiver };

/** Moves old entries of the audit log of the job's tenant to archives in the backup store. */
export const auditArchive = ({ auditArchiver }: AuditArchiveDeps): JobType<Payload> =>
  defineJobType<Payload>({
    name: ARCHIVE_JOB,
    summary: 'Moves old audit entries of a tenant to archives in the backup store',
    payload: Payload,
    permission: 'audit:archive',
    lane: 'activity',
    timeoutMs: STEP_TIMEOUT_MS,
    retry: STEP_RETRY,
    run: ({ olderThanDays = DEFAULT_ARCHIVE_DAYS }, tools) =>
      auditArchiver.archive(olderThanDays, tools).catch((error: unknown) => {
        throw asJobFailure(error);
      }),
  });
