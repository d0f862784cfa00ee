import { Code, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { FieldValue } from '../../parts/diff/FieldDiff.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { labelOfField } from '../../parts/format.ts';
import { headingOf, nounOf } from '../../parts/nouns.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { answer, api } from '../api.ts';
import { useLiveRefresh } from '../live.ts';
import { useTitle } from '../useTitle.ts';

const route = getRouteApi('/frame/id/$id');

/** Paths of the API for what is no inventory record. */
const API_PATHS: Readonly<Record<string, string>> = {
  jobs: '/api/jobs',
  schedules: '/api/schedules',
  workflows: '/api/workflows',
  users: '/api/users',
  webhooks: '/api/webhooks',
  backups: '/api/backup',
};

/** A record of a kind that the console has no page for: its fields, or how to read it. */
export function RecordPage() {
  const { id } = route.useParams();
  const { data, error, refetch } = useQuery({
    queryKey: ['search', 'id', id],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/search', { params: { query: { q: id, limit: 1 } }, signal })),
  });
  const record = data?.items.find((item) => item.id === id);
  useTitle(record?.label ?? id);
  if (data === undefined)
    return error && <ProblemNote problem={error} retry={() => void refetch()} />;
  if (record === undefined)
    return (
      <Empty
        kind="hidden"
        title="No record with this id"
        detail={`There is no ${id}, or you may not read it.`}
      />
    );
  const { kind, label } = record;
  const apiPath = API_PATHS[kind];
  const path = `${apiPath ?? `/api/inventory/${kind}`}/${id}`;
  return (
    <Stack gap="xs" p="md" align="stretch">
      <Title order={1}>{label}</Title>
      <Text size="sm" c="dimmed">
        {headingOf(kind, 1)}, in the API <Code>{path}</Code>{' '}
        <CopyButton value={path} label="Copy the path" />
      </Text>
      {apiPath === undefined ? (
        <InventoryFields kind={kind} id={id} />
      ) : (
        <Text size="sm">The console has no page for {nounOf(kind, 2)} yet.</Text>
      )}
    </Stack>
  );
}

/** Fields of every record, which are shown last. */
const LAST = ['createdAt', 'updatedAt', 'version'];

/** The fields of a record of the inventory, with names instead of ids. */
function InventoryFields({ kind, id }: { kind: string; id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['inventory', kind, id],
    queryFn: ({ signal }) =>
      answer(
        // The path of every resource has the same form; the types know only each by itself.
        api.GET(`/api/inventory/${kind as 'prefixes'}/{id}`, {
          params: { path: { id }, query: { include: 'labels,people' } },
          signal,
        }),
      ),
  });
  useLiveRefresh(['inventory.*'], ['inventory', kind, id], ({ subject }) => subject.id === id);
  if (data === undefined)
    return error && <ProblemNote problem={error} retry={() => void refetch()} />;
  const { included, ...fields } = data;
  const names = Object.keys(fields).filter((field) => field !== 'id' && !LAST.includes(field));
  const values: Readonly<Record<string, unknown>> = fields;
  return (
    <DescriptionList
      items={[...names, ...LAST].map((field) => ({
        label: labelOfField(field),
        value: <FieldValue field={field} value={values[field]} names={included} />,
      }))}
    />
  );
}
