import { NativeSelect, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useJobTypes } from '../../app/jobTypes.ts';
import { Empty } from '../../parts/Empty.tsx';
import type { RetryPolicy } from '../../parts/form/retryPolicy.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { JobForm, type JobDraft } from './JobForm.tsx';
import { jobQuery, type Job, type JobType } from './jobQueries.ts';
import { whyNotRun } from '../../parts/records/jobTarget.ts';
import classes from './Jobs.module.css';

const route = getRouteApi('/frame/jobs/new');

const PARENT = { label: 'Jobs', to: '/jobs' };

const NO_DRAFT: JobDraft = { payload: {}, retryPolicy: {} };

/** Chooses the type of a job and fills in its payload. What was typed for a type stays. */
export function NewJobPage() {
  const { type: chosen, from } = route.useSearch();
  const navigate = route.useNavigate();
  const types = useJobTypes();
  const copied = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined });
  const [drafts, setDrafts] = useState<Readonly<Record<string, JobDraft>>>({});
  const creatable = (types.data?.items ?? []).filter(({ createdOnlyBy }) => createdOnlyBy === null);
  const name = chosen ?? copied.data?.type;
  const whyNotType = useWhyNot();
  const found = creatable.find((each) => each.name === name);
  const type = useOpenType(found, whyNotType);
  const error = types.error ?? copied.error;
  const retry = () => {
    for (const query of [types, copied]) if (query.error) void query.refetch();
  };
  const isReading = types.isPending || (from !== undefined && copied.isPending);
  return (
    <RecordPage parent={PARENT} title="New job">
      {error && <ProblemNote problem={error} retry={retry} />}
      {isReading && !error && <Reading height={240} label="Loading the job types" />}
      {types.data && !isReading && (
        <div className={classes.chooser}>
          <TypeList
            types={creatable}
            whyNot={whyNotType}
            chosen={name}
            onChoose={(next) => void navigate({ search: { type: next, from }, replace: true })}
          />
          {type ? (
            <JobForm
              key={type.name}
              type={type}
              draft={drafts[type.name] ?? draftOf(copied.data, type)}
              onDraft={(draft) => setDrafts({ ...drafts, [type.name]: draft })}
              // Also what was typed for another type.
              hasChanges={Object.keys(drafts).length > 0}
            />
          ) : (
            <Empty
              kind={name === undefined ? 'nothing' : 'hidden'}
              title={name === undefined ? 'Choose what to run' : `${name} cannot be created here`}
              detail={
                name === undefined
                  ? 'The type decides what the job does and which payload it takes.'
                  : found
                    ? whyNotType(found)
                    : types.data.items.find((each) => each.name === name)?.createdOnlyBy
              }
            />
          )}
        </div>
      )}
    </RecordPage>
  );
}

/**
 * The type whose form is shown. An open form stays when another tab switches to a tenant in which the user
 * may not create such jobs: what was typed belongs to the tenant in which the form was opened.
 */
function useOpenType(
  found: JobType | undefined,
  whyNot: (type: JobType) => string | undefined,
): JobType | undefined {
  const [open, setOpen] = useState<string>();
  const isAllowed = found !== undefined && whyNot(found) === undefined;
  if (isAllowed && open !== found.name) setOpen(found.name);
  return isAllowed || found?.name === open ? found : undefined;
}

/** Why the user cannot create jobs of a type anywhere. */
function useWhyNot(): (type: JobType) => string | undefined {
  const { whyNot } = usePermissions();
  return (type) => whyNotRun(type, (permission) => whyNot(permission));
}

/** The form starts with the payload of a job of the same type, if one is copied. */
const draftOf = (copied: Job | undefined, type: JobType): JobDraft =>
  copied?.type === type.name
    ? {
        payload: copied.payload,
        retryPolicy: changedPolicy(copied.retryPolicy, type.retryPolicy),
        targetId: copied.target?.id,
      }
    : NO_DRAFT;

/** The fields in which the policy of a job differs from that of its type. */
const changedPolicy = (policy: RetryPolicy, own: RetryPolicy): Partial<RetryPolicy> =>
  Object.fromEntries(
    Object.entries(policy).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(own[field as keyof RetryPolicy]),
    ),
  );

type TypeListProps = {
  types: readonly JobType[];
  whyNot: (type: JobType) => string | undefined;
  chosen: string | undefined;
  onChoose: (name: string) => void;
};

/** The types that can be created: a list, on narrow pages a menu. */
function TypeList({ types, whyNot, chosen, onChoose }: TypeListProps) {
  return (
    <nav aria-label="Job types">
      <NativeSelect
        hiddenFrom="sm"
        size="xs"
        label="Job type"
        value={chosen ?? ''}
        onChange={(event) => onChoose(event.currentTarget.value)}
        data={[
          { value: '', label: 'Choose', disabled: true },
          ...types.map((type) => ({
            value: type.name,
            label: `${type.name}: ${whyNot(type) ?? type.summary}`,
            disabled: whyNot(type) !== undefined,
          })),
        ]}
      />
      <ul className={`${classes.types} mantine-visible-from-sm`}>
        {types.map((type) => (
          <li key={type.name}>
            <TypeButton
              type={type}
              reason={whyNot(type)}
              isChosen={type.name === chosen}
              onChoose={onChoose}
            />
          </li>
        ))}
      </ul>
    </nav>
  );
}

type TypeButtonProps = {
  type: JobType;
  /** Why it cannot be chosen. */
  reason: string | undefined;
  isChosen: boolean;
  onChoose: (name: string) => void;
};

function TypeButton({ type: { name, summary }, reason, isChosen, onChoose }: TypeButtonProps) {
  const isOff = reason !== undefined;
  return (
    <UnstyledButton
      className={classes.type}
      aria-current={isChosen}
      aria-disabled={isOff || undefined}
      onClick={() => {
        if (!isOff) onChoose(name);
      }}
    >
      <span className={classes.typeName}>{name}</span>
      <span className={classes.typeSummary}>{summary}</span>
      {isOff && <span className={classes.typeSummary}>{reason}</span>}
    </UnstyledButton>
  );
}
