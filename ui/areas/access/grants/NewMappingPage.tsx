import { Select, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields, type FieldError } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { enabledProvidersQuery } from '../providers/providerQueries.ts';
import { useDraft } from '../useDraft.tsx';
import { Members } from './Members.tsx';
import { RoleField } from './RoleField.tsx';
import { ScopeField } from './ScopeField.tsx';
import { missingOfScope, scopeIds, scopeOfText, type ScopeDraft } from './scopes.ts';
import { useWhere } from './useWhere.ts';

const route = getRouteApi('/frame/access/mappings/new');

const PARENT = { label: 'Group mappings', to: '/access/mappings' };
const SHOWN = ['/providerId', '/externalGroup', '/roleId', '/tenantId', '/siteId', '/deviceId'];
const PAUSE_MS = 400;

type Draft = {
  providerId: string | undefined;
  group: string;
  roleId: string | undefined;
  scope: ScopeDraft;
};

function missingIn({ providerId, group, roleId, scope }: Draft): string | undefined {
  if (providerId === undefined) return 'Choose an identity provider.';
  if (group.trim() === '') return 'Type the name of the group.';
  if (roleId === undefined) return 'Choose a role.';
  return missingOfScope(scope);
}

/** Providers with groups; of one that the address names and that is not enabled, its id. */
function ProviderField({ value, onChange, error }: FieldProps) {
  const { data } = useQuery(enabledProvidersQuery);
  const known = (data ?? [])
    .filter(({ kind }) => kind !== 'local')
    .map(({ id, name }) => ({ value: id, label: name }));
  const isKnown = value === undefined || known.some((each) => each.value === value);
  return (
    <Select
      label="Identity provider"
      size="xs"
      required
      data={isKnown ? known : [{ value, label: value }, ...known]}
      value={value ?? null}
      onChange={(id) => id !== null && onChange(id)}
      allowDeselect={false}
      placeholder={data && known.length === 0 ? 'No enabled identity provider' : 'Choose'}
      error={error}
    />
  );
}

type FieldProps = {
  value: string | undefined;
  onChange: (providerId: string) => void;
  error: string | undefined;
};

/** Creates the mapping, and leads to it. */
function useMapGroup(allowLeave: () => void) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: ({ providerId = '', group, roleId = '', scope }: Draft, header) =>
      answer(
        api.POST('/api/rbac/provider-mappings', {
          params: { header },
          body: { providerId, externalGroup: group.trim(), roleId, ...scopeIds(scope) },
        }),
      ),
    onMade: ({ id }) => {
      allowLeave();
      void client.invalidateQueries({ queryKey: ['access'] });
      void navigate({ to: '/access/mappings/$mappingId', params: { mappingId: id } });
    },
  });
}

/** Lets the members of a group have a role somewhere. */
export function NewMappingPage() {
  const search = route.useSearch();
  const { draft, change, allowLeave, guard } = useDraft((): Draft => ({
    providerId: search.providerId,
    group: search.externalGroup ?? '',
    roleId: search.roleId,
    scope: scopeOfText(search),
  }));
  const { create, isBusy, error } = useMapGroup(allowLeave);
  const where = useWhere(draft.scope);
  const [group] = useDebouncedValue(draft.group.trim(), PAUSE_MS);
  return (
    <RecordPage
      parent={PARENT}
      title="New group mapping"
      note="Members of the group get the role with each login, and lose it when they leave the group or the mapping is removed."
      form
      aside={
        draft.providerId !== undefined && group !== '' ? (
          <Members providerId={draft.providerId} group={group} />
        ) : undefined
      }
    >
      {guard}
      <RecordForm
        problem={error}
        shown={SHOWN}
        onSubmit={() => create(draft)}
        busy={isBusy}
        submit="Map group"
        permission="rbac:write"
        where={where}
        reason={missingIn(draft)}
        back="/access/mappings"
      >
        <MappingFields draft={draft} onChange={change} errors={problemFields(error).errors} />
      </RecordForm>
    </RecordPage>
  );
}

type FormProps = {
  draft: Draft;
  onChange: (fields: Partial<Draft>) => void;
  errors: readonly FieldError[];
};

function MappingFields({ draft, onChange, errors }: FormProps) {
  return (
    <>
      <ProviderField
        value={draft.providerId}
        onChange={(providerId) => onChange({ providerId })}
        error={errorAt(errors, '/providerId')}
      />
      <TextInput
        label="Group"
        description="Its name at the provider, case-sensitive"
        required
        maxLength={255}
        autoComplete="off"
        spellCheck={false}
        value={draft.group}
        onChange={(event) => onChange({ group: event.currentTarget.value })}
        error={errorAt(errors, '/externalGroup')}
      />
      <RoleField
        value={draft.roleId}
        onChange={(roleId) => onChange({ roleId })}
        error={errorAt(errors, '/roleId')}
      />
      <ScopeField
        label="Where"
        value={draft.scope}
        onChange={(scope) => onChange({ scope })}
        errors={errors}
      />
    </>
  );
}
