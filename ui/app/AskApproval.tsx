import { Button, Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import type { FormTenant } from '../../app/useFormTenant.tsx';
import { errorAt, otherErrors } from '../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../parts/problems.ts';
import { Dialog } from '../../parts/Dialog.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { recordPath } from '../../parts/recordIds.ts';
import type { JobType } from './jobQueries.ts';
import { targetKindOf, targetRequest, type TargetKind } from '../../parts/records/target.ts';
import classes from './Jobs.module.css';

type Props = {
  opened: boolean;
  onClose: () => void;
  type: JobType;
  payload: Record<string, unknown>;
  tenant: FormTenant;
  /** The id of the record that the job is about. */
  targetId: string | undefined;
  /** Called before the page of the request opens. */
  onAsked: () => void;
};

const SHOWN = ['/title', '/assignedRoleIds', '/assignedUserIds', '/requiredApprovals'];
const MIN_SEARCH = 3;

/** Asks others to approve a job, which then runs with the permissions of who asks. */
export function AskApproval({ opened, onClose, ...props }: Props) {
  return (
    <Dialog opened={opened} onClose={onClose} title="Ask for approval" size="lg">
      <AskForm {...props} onClose={onClose} />
    </Dialog>
  );
}

/** What is typed for a request. */
type Draft = {
  title: string;
  reason: string;
  roles: readonly string[];
  users: readonly string[];
  required: number | string;
};

/** Creates the request and opens its page. */
function useAsk({ type, payload, targetId, tenant, onAsked }: Omit<Props, 'opened' | 'onClose'>) {
  const navigate = useNavigate();
  const { can } = usePermissions();
  const jobTarget = targetRequest(targetKindOf(type), targetId);
  return useCreation({
    send: ({ title, reason, roles, users, required }: Draft, header) => {
      const body = {
        type: 'job',
        title: title.trim(),
        payload: reason.trim() === '' ? {} : { reason: reason.trim() },
        assignedRoleIds: [...roles],
        assignedUserIds: [...users],
        jobType: type.name,
        jobPayload: payload,
        ...(jobTarget && { jobTarget, ...(!can('workflow:write') && scopeOf(jobTarget)) }),
        ...(typeof required === 'number' && { requiredApprovals: required }),
      };
      const { headers } = tenant;
      return answer(api.POST('/api/workflows', { params: { header }, headers, body }));
    },
    onMade: ({ id }) => {
      onAsked();
      void navigate({ to: recordPath(id) });
    },
  });
}

/** A request at the target itself, for who may ask there and not in the whole tenant. */
const scopeOf = ({ kind, id }: { kind: TargetKind; id: string }) =>
  kind === 'site' ? { siteId: id } : { deviceId: id };

function AskForm({ onClose, ...props }: Omit<Props, 'opened'>) {
  const [draft, setDraft] = useState<Draft>({
    title: `Run ${props.type.name}`,
    reason: '',
    roles: [],
    users: [],
    required: 1,
  });
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed });
  const { create: ask, isBusy, error } = useAsk(props);
  const errors = error instanceof Problem ? error.errors : [];
  const isElsewhere = otherErrors(errors, SHOWN).length > 0;
  return (
    <form
      className={classes.fields}
      onSubmit={(event) => {
        event.preventDefault();
        // The dialog is inside the form of the job, though not in the document.
        event.stopPropagation();
        ask(draft);
      }}
    >
      <span className={classes.muted}>
        After the approval the job runs exactly as you have filled it in, with your permissions and
        the retry policy of its type.
      </span>
      {error && <ProblemNote problem={error} withoutFields={!isElsewhere} />}
      <Words draft={draft} onChange={change} errors={errors} />
      <Deciders
        roles={draft.roles}
        onRoles={(roles) => change({ roles })}
        users={draft.users}
        onUsers={(users) => change({ users })}
        error={errors.find(({ pointer }) => pointer.startsWith('/assigned'))?.detail}
      />
      <NumberInput
        label="Approvals needed"
        value={draft.required}
        onChange={(required) => change({ required })}
        min={1}
        w={160}
        error={errorAt(errors, '/requiredApprovals')}
      />
      <div className={classes.buttons}>
        <Button type="submit" loading={isBusy}>
          Ask for approval
        </Button>
        <Button variant="default" onClick={onClose}>
          Back
        </Button>
      </div>
    </form>
  );
}

type WordsProps = {
  draft: Draft;
  onChange: (changed: Partial<Draft>) => void;
  errors: readonly FieldError[];
};

function Words({ draft, onChange, errors }: WordsProps) {
  return (
    <>
      <TextInput
        data-autofocus
        label="Title"
        value={draft.title}
        onChange={(event) => onChange({ title: event.currentTarget.value })}
        error={errorAt(errors, '/title')}
      />
      <Textarea
        label="Reason"
        description="For those who decide."
        value={draft.reason}
        onChange={(event) => onChange({ reason: event.currentTarget.value })}
        autosize
        minRows={2}
        maxRows={8}
      />
    </>
  );
}

type DecidersProps = {
  roles: readonly string[];
  onRoles: (ids: readonly string[]) => void;
  users: readonly string[];
  onUsers: (ids: readonly string[]) => void;
  error: string | undefined;
};

const toggled = (ids: readonly string[], id: string): string[] =>
  ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];

/** Who is asked: roles and people that may decide in this tenant. */
function Deciders({ roles, onRoles, users, onUsers, error }: DecidersProps) {
  const [text, setText] = useState('');
  const [names, setNames] = useState<Readonly<Record<string, string>>>({});
  const { data, error: problem, refetch } = useDeciders(text);
  const found = data?.items ?? [];
  const others = users.filter((id) => !found.some((each) => each.id === id));
  const people = [
    ...others.map((id) => ({ id, label: names[id] ?? id })),
    ...found.map(({ id, displayName, username }) => ({
      id,
      label: `${displayName} (${username})`,
    })),
  ];
  return (
    <fieldset className={classes.fieldset}>
      <legend>Who is asked</legend>
      {problem && (
        <ProblemNote problem={problem} retry={() => void refetch()} hasData={data !== undefined} />
      )}
      <div className={classes.choices}>
        {(data?.roles ?? []).map(({ id, name }) => (
          <Checkbox
            key={id}
            label={`Everyone with the role ${name}`}
            checked={roles.includes(id)}
            onChange={() => onRoles(toggled(roles, id))}
          />
        ))}
      </div>
      <TextInput
        aria-label="Search people"
        placeholder="Search people"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className={classes.choices}>
        {people.map(({ id, label }) => (
          <Checkbox
            key={id}
            label={label}
            checked={users.includes(id)}
            onChange={() => {
              setNames({ ...names, [id]: label });
              onUsers(toggled(users, id));
            }}
          />
        ))}
        {data?.items.length === 0 && <span className={classes.muted}>Nobody found</span>}
      </div>
      {error !== undefined && <span className={classes.error}>{error}</span>}
    </fieldset>
  );
}

/** Roles that may decide, and people by a part of their name. */
function useDeciders(text: string) {
  const wanted = useDeferredValue(text.trim());
  const q = wanted.length < MIN_SEARCH ? undefined : wanted;
  return useQuery({
    queryKey: ['jobs', 'deciders', q],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/workflows/deciders', {
          params: { query: { limit: 8, ...(q !== undefined && { q }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
}
