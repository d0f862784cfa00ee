import { Button, Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useState } from 'react';
import { errorAt } from '../parts/form/fieldErrors.ts';
import type { FieldError } from '../parts/problems.ts';
import { Dialog, useBusyDialog } from '../parts/Dialog.tsx';
import { accountName } from '../parts/names.ts';
import { ProblemNote } from '../parts/ProblemNote.tsx';
import { RefusedNote } from '../parts/RefusedNote.tsx';
import { usePermissions, type Where } from '../parts/permissions.tsx';
import { recordPath } from '../parts/recordIds.ts';
import { whereToAsk } from '../parts/where.ts';
import { answer, api, Problem, type Schemas } from './api.ts';
import { useCreation } from './useCreation.ts';
import classes from './AskApproval.module.css';

type Body = Schemas['ApprovalRequestBody'];

type Props = {
  opened: boolean;
  onClose: () => void;
  type: 'change' | 'job';
  /** The title that it starts with. */
  title: string;
  /** What happens after the approval, in words. */
  note: string;
  /** What is approved. */
  content: Omit<Partial<Body>, 'tenantId' | 'siteId' | 'deviceId'>;
  /** Where it takes effect. */
  where: Where;
  /** The headers of the request, such as that with its tenant. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Called before the page of the request opens. */
  onAsked?: (() => void) | undefined;
};

const SHOWN = ['/title', '/assignedRoleIds', '/assignedUserIds', '/requiredApprovals'];
const MIN_SEARCH = 3;
/** What asking needs. */
const ASK = 'workflow:write';

/** Asks others to approve something before it is done. */
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

type Scope = { tenantId?: string; siteId?: string; deviceId?: string };

type FormProps = Omit<Props, 'opened' | 'onClose' | 'where'> & { scope: Scope };

/** The scope of a request about something there; without an id, the service takes the tenant of the session. */
function useScope(where: Where, type: Props['type']): Scope {
  const { can, heldAt } = usePermissions();
  const asked = whereToAsk(where, type, {
    mayAsk: (each) => can(ASK, each),
    held: heldAt(ASK),
  });
  const { tenantId, siteId, deviceId } = asked;
  return {
    ...(tenantId !== undefined && { tenantId }),
    ...(siteId != null && { siteId }),
    ...(deviceId != null && { deviceId }),
  };
}

/** Creates the request and opens its page. */
function useAsk({ type, content, scope, headers, onAsked }: FormProps) {
  const navigate = useNavigate();
  return useCreation({
    send: ({ title, reason, roles, users, required }: Draft, header) => {
      const body = {
        type,
        title: title.trim(),
        payload: reason.trim() === '' ? {} : { reason: reason.trim() },
        assignedRoleIds: [...roles],
        assignedUserIds: [...users],
        ...content,
        ...scope,
        ...(typeof required === 'number' && { requiredApprovals: required }),
      };
      return answer(
        api.POST('/api/workflows', { params: { header }, headers: { ...headers }, body }),
      );
    },
    onMade: ({ id }) => {
      onAsked?.();
      void navigate({ to: recordPath(id) });
    },
  });
}

function AskForm({ onClose, where, ...rest }: Omit<Props, 'opened'>) {
  const props = { ...rest, scope: useScope(where, rest.type) };
  const [draft, setDraft] = useState<Draft>({
    title: props.title,
    reason: '',
    roles: [],
    users: [],
    required: 1,
  });
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed });
  const { create: ask, isBusy, error } = useAsk(props);
  useBusyDialog(isBusy);
  const errors = error instanceof Problem ? error.errors : [];
  return (
    <form
      className={classes.fields}
      onSubmit={(event) => {
        event.preventDefault();
        ask(draft);
      }}
    >
      <span className={classes.muted}>{props.note}</span>
      <RefusedNote problem={error} shown={SHOWN} />
      <Words draft={draft} onChange={change} errors={errors} />
      <Deciders
        scope={props.scope}
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
        <Button variant="default" onClick={onClose} disabled={isBusy}>
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
  scope: Scope;
  roles: readonly string[];
  onRoles: (ids: readonly string[]) => void;
  users: readonly string[];
  onUsers: (ids: readonly string[]) => void;
  error: string | undefined;
};

const toggled = (ids: readonly string[], id: string): string[] =>
  ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];

/** Who is asked: roles and people that may decide there. */
function Deciders({ scope, roles, onRoles, users, onUsers, error }: DecidersProps) {
  const [text, setText] = useState('');
  const [names, setNames] = useState<Readonly<Record<string, string>>>({});
  const { data, error: problem, refetch } = useDeciders(scope, text);
  const found = data?.items ?? [];
  const others = users.filter((id) => !found.some((each) => each.id === id));
  const people = [
    ...others.map((id) => ({ id, label: names[id] ?? id })),
    ...found.map(({ id, displayName, ...account }) => ({
      id,
      label: `${displayName} (${accountName(account)})`,
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

/** Roles that may decide there, and people by a part of their name. */
function useDeciders(scope: Scope, text: string) {
  const wanted = useDeferredValue(text.trim());
  const q = wanted.length < MIN_SEARCH ? undefined : wanted;
  return useQuery({
    queryKey: ['deciders', scope, q],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/workflows/deciders', {
          params: { query: { ...scope, limit: 8, ...(q !== undefined && { q }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
}
