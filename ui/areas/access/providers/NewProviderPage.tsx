import { Select, Switch } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../../app/api.ts';
import { useIdempotencyKeys } from '../../../app/idempotency.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useSend } from '../../../app/useSend.ts';
import { errorAt, objectOf } from '../../../parts/form/fieldErrors.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { ownValue } from '../../../parts/ownValue.ts';
import { problemFields } from '../../../parts/problems.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { initialValue } from '../../../parts/schemaForm/check.ts';
import { shapeOf } from '../../../parts/schemaForm/shape.ts';
import { useDraft } from '../useDraft.tsx';
import { ConfigForm } from './ConfigForm.tsx';
import { NameField } from './NameField.tsx';
import { secretsRequest, type Secrets } from './providerConfig.ts';
import { PROVIDER_KINDS } from './providerFilters.ts';
import { kindsQuery, PROVIDERS_KEY, type Kind } from './providerQueries.ts';
import { SecretFields } from './SecretFields.tsx';

const route = getRouteApi('/frame/access/providers/new');

const PARENT = { label: 'Identity providers', to: '/access/providers' };
const SHOWN = ['/kind', '/name', '/enabled', '/config'];

/** Chooses the kind of a new provider; the address has it. */
export function NewProviderPage() {
  const { kind: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(kindsQuery);
  const kinds = (data ?? []).filter(({ kind }) => kind !== 'local');
  const kind = kinds.find((each) => each.kind === chosen) ?? kinds[0];
  return (
    <RecordPage
      parent={PARENT}
      title="New identity provider"
      note="Create it disabled, test it, map its groups to roles, and then enable it."
      form
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {kind && (
        <Creator
          kind={kind}
          kinds={kinds}
          onKind={(next) => void navigate({ search: { kind: next }, replace: true })}
        />
      )}
    </RecordPage>
  );
}

/** What was typed for a kind is there when it is chosen again. */
type ByKind<T> = Readonly<Record<string, T>>;
type Draft = { name: string; enabled: boolean; configs: ByKind<unknown> };
type Filled = { name: string; enabled: boolean; config: unknown };
type Props = { kind: Kind; kinds: readonly Kind[]; onKind: (kind: string) => void };

/** Creates the provider. The cache of the query client never has its secrets. */
function useCreate({ kind }: Kind, onMade: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const keys = useIdempotencyKeys();
  return async ({ name, enabled, config }: Filled, secrets: Secrets): Promise<void> => {
    const body = {
      kind,
      name: name.trim(),
      enabled,
      config: { ...objectOf(config), ...secretsRequest(secrets) },
    };
    const { id } = await keys.once(body, (header) =>
      answer(api.POST('/api/auth/providers', { params: { header }, body })),
    );
    onMade();
    void client.invalidateQueries({ queryKey: PROVIDERS_KEY });
    await navigate({ to: '/access/providers/$providerId', params: { providerId: id } });
  };
}

/** What is typed. What is typed into the hidden fields is not in the draft of the other fields. */
function useProviderDraft({ kind, schema }: Kind) {
  const { draft, change, allowLeave, guard } = useDraft((): Draft => ({
    name: '',
    enabled: false,
    configs: {},
  }));
  const hidden = useDraft((): ByKind<Secrets> => ({}));
  return {
    filled: {
      name: draft.name,
      enabled: draft.enabled,
      config: ownValue(draft.configs, kind) ?? initialValue(shapeOf(schema)),
    },
    secrets: ownValue(hidden.draft, kind) ?? {},
    change,
    changeConfig: (config: unknown) => change({ configs: { ...draft.configs, [kind]: config } }),
    changeSecrets: (secrets: Secrets) => hidden.change({ [kind]: secrets }),
    allowLeave: () => {
      allowLeave();
      hidden.allowLeave();
    },
    guards: (
      <>
        {guard}
        {hidden.guard}
      </>
    ),
  };
}

function Creator({ kind, kinds, onKind }: Props) {
  const draft = useProviderDraft(kind);
  const { filled, secrets, change } = draft;
  const [isIncomplete, setIncomplete] = useState(false);
  const { send, busy, problem, reset } = useSend();
  const create = useCreate(kind, draft.allowLeave);
  const { errors } = problemFields(problem);
  return (
    <>
      {draft.guards}
      <RecordForm
        problem={problem}
        shown={SHOWN}
        onSubmit={() => void send(() => create(filled, secrets))}
        busy={busy}
        submit="Create identity provider"
        permission="auth:write"
        where={PLATFORM}
        reason={isIncomplete ? 'A field is incomplete.' : undefined}
        back="/access/providers"
      >
        <KindField
          kind={kind}
          kinds={kinds}
          onKind={(next) => {
            reset();
            onKind(next);
          }}
        />
        <NameField
          value={filled.name}
          onChange={(name) => change({ name })}
          error={errorAt(errors, '/name')}
        />
        <ConfigForm
          key={kind.kind}
          kind={kind}
          config={filled.config}
          onChange={draft.changeConfig}
          errors={errors}
          onIncomplete={setIncomplete}
        />
        <SecretFields
          fields={kind.secrets}
          stored={[]}
          isMoved={false}
          values={secrets}
          onChange={draft.changeSecrets}
          errors={errors}
        />
        <Switch
          label="Users can sign in with it"
          checked={filled.enabled}
          onChange={(event) => change({ enabled: event.currentTarget.checked })}
        />
      </RecordForm>
    </>
  );
}

function KindField({ kind, kinds, onKind }: Props) {
  return (
    <Select
      label="Kind"
      size="xs"
      data={kinds.map((each) => ({
        value: each.kind,
        label: PROVIDER_KINDS[each.kind] ?? each.kind,
      }))}
      value={kind.kind}
      onChange={(next) => next !== null && onKind(next)}
      allowDeselect={false}
    />
  );
}
