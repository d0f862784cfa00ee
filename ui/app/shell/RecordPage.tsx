import { Code, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { answer, api } from '../api.ts';
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

/** A record of a kind that the console has no page for: what it is, and how to read it. */
export function RecordPage() {
  const { id } = route.useParams();
  const { data, error, refetch } = useQuery({
    queryKey: ['search', 'id', id],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/search', { params: { query: { q: id, limit: 1 } }, signal })),
  });
  const record = data?.items.find((item) => item.id === id);
  useTitle(record?.label ?? id);
  if (error) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (data === undefined) return null;
  if (record === undefined)
    return (
      <Empty
        kind="hidden"
        title="No record with this id"
        detail={`There is no ${id}, or you may not read it.`}
      />
    );
  const path = `${API_PATHS[record.kind] ?? `/api/inventory/${record.kind}`}/${id}`;
  return (
    <Stack gap="xs" p="md" align="flex-start">
      <Title order={1}>{record.label}</Title>
      {record.description !== '' && <Text>{record.description}</Text>}
      <Text size="sm">
        The console has no page for {record.kind.replaceAll('-', ' ')}. The API has this record at{' '}
        <Code>{path}</Code> <CopyButton value={path} label="Copy the path" />
      </Text>
    </Stack>
  );
}
