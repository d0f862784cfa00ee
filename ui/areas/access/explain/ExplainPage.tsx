import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useJobTypes } from '../../../app/jobTypes.ts';
import { useState } from 'react';
import { Empty } from '../../../parts/Empty.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { AccessNav } from '../AccessNav.tsx';
import { AccountPicker } from '../AccountPicker.tsx';
import { ScopeField } from '../grants/ScopeField.tsx';
import { missingOfScope, scopeIds, scopeOfText, type ScopeDraft } from '../grants/scopes.ts';
import { areaLabel, areaOf } from '../roles/permissionMatrix.ts';
import { usePermissionNames } from '../roles/usePermissionNames.ts';
import { Answer } from './Answer.tsx';
import { explainQuery, type Permission, type Question } from './explainQueries.ts';
import classes from '../Access.module.css';

const route = getRouteApi('/frame/access/explain');

type ExplainSearch = Partial<
  Record<
    'userId' | 'permission' | 'jobType' | 'tenantId' | 'siteId' | 'deviceId',
    string | undefined
  >
>;

/** The question of an address; undefined while a part of it is missing. */
function questionOf(search: ExplainSearch, scope: ScopeDraft): Question | undefined {
  const { userId, permission, jobType } = search;
  if (userId === undefined || permission === undefined) return undefined;
  if (missingOfScope(scope) !== undefined) return undefined;
  return {
    userId,
    // The service says what is no permission.
    permission: permission as Permission,
    ...(jobType !== undefined && permission === 'job:write' && { jobType }),
    ...scopeIds(scope),
  };
}

/** Says why an account may do something somewhere, or what it lacks. */
export function ExplainPage() {
  const search: ExplainSearch = route.useSearch();
  const navigate = route.useNavigate();
  const [scope, setScope] = useState(() => scopeOfText(search));
  const ask = (fields: Partial<ExplainSearch>) =>
    void navigate({ search: { ...search, ...fields }, replace: true });
  const question = questionOf(search, scope);
  const changeScope = (next: ScopeDraft) => {
    setScope(next);
    const { tenantId, siteId, deviceId } = scopeIds(next);
    ask({ tenantId, siteId, deviceId });
  };
  return (
    <div className={classes.page}>
      <div className={classes.top}>
        <h1 className={classes.title}>Why can …</h1>
        <AccessNav view="/access/explain" />
      </div>
      <QuestionFields search={search} onAsk={ask} scope={scope} onScope={changeScope} />
      {question ? (
        <Explained question={question} />
      ) : (
        <Empty
          kind="notSetUp"
          title="Choose who, what and where"
          detail="The answer says by which role, and by which assignment or membership in a group. The address of the page has the question: a link shows others the same."
        />
      )}
    </div>
  );
}

type FieldsProps = {
  search: ExplainSearch;
  onAsk: (fields: Partial<ExplainSearch>) => void;
  scope: ScopeDraft;
  onScope: (scope: ScopeDraft) => void;
};

function QuestionFields({ search, onAsk, scope, onScope }: FieldsProps) {
  const names = usePermissionNames();
  const areas = [...new Set(names.map(areaOf))];
  return (
    <>
      <div className={classes.columns}>
        <AccountPicker label="Who" value={search.userId} onChange={(userId) => onAsk({ userId })} />
        <Select
          label="May do what"
          size="xs"
          searchable
          placeholder="A permission"
          data={areas.map((area) => ({
            group: areaLabel(area),
            items: names.filter((name) => areaOf(name) === area),
          }))}
          value={search.permission ?? null}
          onChange={(permission) => onAsk({ permission: permission ?? undefined })}
          allowDeselect={false}
        />
        {search.permission === 'job:write' && (
          <JobTypeField value={search.jobType} onChange={(jobType) => onAsk({ jobType })} />
        )}
      </div>
      <ScopeField label="Where" value={scope} onChange={onScope} errors={[]} />
    </>
  );
}

type JobTypeProps = {
  value: string | undefined;
  onChange: (jobType: string | undefined) => void;
};

function JobTypeField({ value, onChange }: JobTypeProps) {
  const known = useJobTypes().data?.items.map(({ name }) => name) ?? [];
  const names = value === undefined || known.includes(value) ? known : [value, ...known];
  return (
    <Select
      label="Jobs of the type"
      size="xs"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear the job type' }}
      placeholder="Any type that is open to all"
      data={names}
      value={value ?? null}
      onChange={(jobType) => onChange(jobType ?? undefined)}
    />
  );
}

function Explained({ question }: { question: Question }) {
  const { data, error, refetch } = useQuery(explainQuery(question));
  if (error)
    return (
      <>
        <ProblemNote problem={error} retry={() => void refetch()} />
        {problemFields(error).status === 404 && (
          <p className={classes.muted}>The account does not exist, or you may not read it.</p>
        )}
      </>
    );
  return data ? <Answer explanation={data} question={question} /> : null;
}
