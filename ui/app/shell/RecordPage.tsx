import { Code, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Navigate } from '@tanstack/react-router';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { headingOf, nounOf } from '../../parts/nouns.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { answer, api } from '../api.ts';
import { OpenView } from '../views/OpenView.tsx';
import { useTitle } from '../useTitle.ts';
import { ownValue } from '../../parts/ownValue.ts';

const route = getRouteApi('/frame/id/$id');

/** Paths of the API for what is no inventory record. */
const API_PATHS: Readonly<Record<string, string>> = {
  jobs: '/api/jobs',
  schedules: '/api/schedules',
  workflows: '/api/workflows',
  users: '/api/users',
  backups: '/api/backup',
};

/** Where an id leads that has no page of its own. */
export function RecordPage() {
  const { id } = route.useParams();
  return id.startsWith('viw_') ? <OpenView id={id} /> : <OtherRecord id={id} />;
}

/** A record of a kind that the console has no page for: its fields, or how to read it. */
function OtherRecord({ id }: { id: string }) {
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
        isPage
        kind="hidden"
        title="No record with this id"
        detail={`There is no ${id}, or you may not read it.`}
      />
    );
  const { kind, label } = record;
  const apiPath = ownValue(API_PATHS, kind);
  if (apiPath === undefined)
    return (
      <Navigate
        to="/inventory/$resource/$recordId"
        params={{ resource: kind, recordId: id }}
        replace
      />
    );
  const path = `${apiPath}/${id}`;
  return (
    <Stack gap="xs" p="md" align="stretch">
      <Title order={1}>{label}</Title>
      <Text size="sm" c="dimmed">
        {headingOf(kind, 1)}, in the API <Code>{path}</Code>{' '}
        <CopyButton value={path} label="Copy the path" />
      </Text>
      <Text size="sm">The console has no page for {nounOf(kind, 2)} yet.</Text>
    </Stack>
  );
}
