import { Checkbox } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { answer, api } from '../../../app/api.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useEditPage } from '../../../app/useEditPage.tsx';
import { errorAt, objectOf } from '../../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../../parts/versioned/useVersionedForm.ts';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { ConfigForm } from './ConfigForm.tsx';
import {
  changesAny,
  configChange,
  configRequest,
  secretsRequest,
  storedSecrets,
  withoutSecrets,
  type Secrets,
} from './providerConfig.ts';
import { NameField } from './NameField.tsx';
import { kindsQuery, providerQuery, type Kind, type Provider } from './providerQueries.ts';
import { SecretFields } from './SecretFields.tsx';

const route = getRouteApi('/frame/access/providers/$providerId/edit');

const PARENT = { label: 'Identity providers', to: '/access/providers' };
const SHOWN = ['/name', '/config'];

/** Changes the settings of a provider. */
export function EditProviderPage() {
  const { providerId } = route.useParams();
  const provider = useQuery(providerQuery(providerId));
  const kinds = useQuery(kindsQuery);
  const kind = kinds.data?.find((each) => each.kind === provider.data?.kind);
  if (provider.data && kind)
    return <Editor key={providerId} provider={provider.data} kind={kind} />;
  return (
    <UnreadRecord
      parent={PARENT}
      title="Edit identity provider"
      id={providerId}
      error={provider.error ?? kinds.error}
      retry={() => Promise.all([provider.refetch(), kinds.refetch()])}
    />
  );
}

type Draft = { name: string; config: Record<string, unknown> };
type Props = { provider: Provider; kind: Kind };

/** The form of a provider; what is typed into its hidden fields is kept beside it. */
function useProviderForm({ provider, kind }: Props, secrets: Secrets) {
  const [keepAccounts, setKeepAccounts] = useState(false);
  const { id } = provider;
  const client = useQueryClient();
  const names = useMemo(() => kind.secrets.map(({ name }) => name), [kind]);
  const versionOf = ({ name, config, version }: Provider) => ({
    values: { name, config: withoutSecrets(config, names) },
    etag: `"${version}"`,
  });
  const form = useVersionedForm<Draft>({
    record: versionOf(provider),
    save: async ({ name, config }, etag, started) =>
      versionOf(
        await answer(
          api.PUT('/api/auth/providers/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body: {
              name: name.trim(),
              ...configRequest(config, started.config, secrets),
              ...(keepAccounts && { keepAccounts }),
            },
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...providerQuery(id), staleTime: 0 })),
  });
  return { ...form, keepAccounts, setKeepAccounts };
}

function reasonOf(isIncomplete: boolean, isChanged: boolean): string | undefined {
  if (isIncomplete) return 'A field is incomplete.';
  return isChanged ? undefined : 'Nothing has been changed.';
}

type KeepAccountsProps = {
  form: Pick<ReturnType<typeof useProviderForm>, 'keepAccounts' | 'setKeepAccounts'>;
};

/** Whether the accounts stay with the ids that they have, though these may be those of other people now. */
function KeepAccounts({ form }: KeepAccountsProps) {
  return (
    <Checkbox
      label="Keep the accounts"
      description="Only if the same service has a new address or name and has kept the ids of its users. Otherwise another person may get an account and its roles."
      checked={form.keepAccounts}
      onChange={(event) => form.setKeepAccounts(event.currentTarget.checked)}
    />
  );
}

function Editor({ provider, kind }: Props) {
  const { id, name } = provider;
  const navigate = route.useNavigate();
  const [secrets, setSecrets] = useState<Secrets>({});
  const [isIncomplete, setIncomplete] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const form = useProviderForm({ provider, kind }, secrets);
  const { errors } = problemFields(form.problem);
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['access'],
    leave: () => {
      setLeaving(true);
      return navigate({ to: '/access/providers/$providerId', params: { providerId: id } });
    },
  });
  const isTyped = Object.keys(secretsRequest(secrets)).length > 0;
  const change = configChange(form.values.config, form.started.config);
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${name}`} form>
      {guards}
      <LeaveGuard hasChanges={() => isTyped && !form.isDirty && !isLeaving} />
      <RecordForm
        problem={problem}
        shown={SHOWN}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="auth:write"
        where={PLATFORM}
        reason={reasonOf(isIncomplete, form.isDirty || isTyped)}
        back={`/access/providers/${id}`}
      >
        <NameField
          value={form.values.name}
          onChange={(next) => form.set('name', next)}
          error={errorAt(errors, '/name')}
        />
        {kind.kind !== 'local' && (
          <ConfigForm
            kind={kind}
            config={form.values.config}
            onChange={(config) => form.set('config', objectOf(config))}
            errors={errors}
            onIncomplete={setIncomplete}
          />
        )}
        {changesAny(change, kind.identity) && <KeepAccounts form={form} />}
        <SecretFields
          fields={kind.secrets}
          stored={storedSecrets(provider.config, kind.secrets)}
          isMoved={changesAny(change, kind.destinations)}
          values={secrets}
          onChange={setSecrets}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
