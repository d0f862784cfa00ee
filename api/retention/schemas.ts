import { Type, type Static } from 'typebox';
import { MAX_JOB_TYPE_NAME } from '../../domain/jobs/jobTypeNames.ts';
import {
  JOB_KINDS,
  MAX_DAYS,
  MAX_JOB_TYPES,
  MIN_DAYS,
  PERIODS,
  PERIOD_NAMES,
  RETENTION_KINDS,
  type PeriodName,
} from '../../domain/retention/retention.ts';
import { closed, Nullable, TenantId, Timestamp } from '../http/schemas.ts';

const ToDefault = Type.Enum(['default'], { title: 'DefaultRetention' });
const DayCount = Type.Integer({ title: 'DayCount', minimum: MIN_DAYS, maximum: MAX_DAYS });

const Overridden = Type.Array(Type.Enum([...PERIOD_NAMES], { title: 'RetentionPeriodName' }), {
  description:
    'The periods that are set for this tenant; others are defaults. In a PUT with it, periods of `days` with their present value stay what they are; without it, all that `days` names are set.',
  readOnly: true,
});

const Days = (name: PeriodName) =>
  Type.Union([DayCount, Type.Null()], {
    title: 'RetentionPeriod',
    description: PERIODS[name].text,
  });

const NewDays = (name: PeriodName) =>
  Type.Optional(
    Type.Union([DayCount, Type.Null(), ToDefault], {
      title: 'NewRetentionPeriod',
      description: PERIODS[name].text,
    }),
  );

const each = <K extends PeriodName, S>(kinds: readonly K[], schema: (kind: K) => S) =>
  Object.fromEntries(kinds.map((kind) => [kind, schema(kind)])) as Record<K, S>;

const JobTypeName = Type.String({ maxLength: MAX_JOB_TYPE_NAME });

export const RetentionRecord = Type.Object(
  {
    tenantId: TenantId(),
    days: Type.Object(each(PERIOD_NAMES, Days), {
      title: 'RetentionDays',
      description: 'How long records of the tenant are kept.',
      ...closed,
    }),
    overridden: Overridden,
    jobTypes: Type.Record(
      JobTypeName,
      Type.Object(
        each(JOB_KINDS, (kind) => Type.Optional(Days(kind))),
        { title: 'JobTypeRetention', ...closed },
      ),
      { description: 'Periods of job types that have their own.' },
    ),
    version: Type.Integer({ description: 'Number of changes of the periods.' }),
  },
  { title: 'Retention', ...closed },
);
export type RetentionRecord = Static<typeof RetentionRecord>;

const change = {
  days: Type.Optional(
    Type.Object(each(PERIOD_NAMES, NewDays), {
      title: 'RetentionDaysChange',
      description:
        'Periods that are not in the request stay; null keeps for ever, `default` returns to the default.',
      ...closed,
    }),
  ),
  jobTypes: Type.Optional(
    Type.Record(
      JobTypeName,
      Type.Union([
        Type.Object(each(JOB_KINDS, NewDays), { title: 'JobTypeRetentionChange', ...closed }),
        ToDefault,
      ]),
      {
        title: 'JobTypeRetentionChanges',
        maxProperties: MAX_JOB_TYPES,
        description:
          'Periods of job types. Types and periods that are not in the request stay; `default` returns to the periods of the tenant.',
      },
    ),
  ),
};

export const RetentionChange = Type.Object(
  { ...change, overridden: Type.Optional(Overridden) },
  { title: 'RetentionChange', ...closed },
);

export const PreviewRequest = Type.Object(
  { tenantId: Type.Optional(TenantId()), ...change },
  { title: 'RetentionPreviewRequest', ...closed },
);

export const PreviewRecord = Type.Object(
  {
    tenantId: TenantId(),
    at: Timestamp,
    kinds: Type.Array(
      Type.Object(
        {
          kind: Type.Enum([...RETENTION_KINDS]),
          total: Nullable(
            Type.Integer({ description: 'What would be purged; null if counting took too long.' }),
          ),
          months: Type.Array(
            Type.Object(
              {
                month: Type.String({
                  description: 'The month in which the records were created, in UTC.',
                  examples: ['2026-08'],
                }),
                count: Type.Integer(),
              },
              { title: 'RetentionMonthPreview', ...closed },
            ),
          ),
        },
        { title: 'RetentionKindPreview', ...closed },
      ),
    ),
  },
  { title: 'RetentionPreview', ...closed },
);
export type PreviewRecord = Static<typeof PreviewRecord>;
