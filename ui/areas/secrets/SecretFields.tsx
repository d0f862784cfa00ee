import { TagsInput, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import type { FieldError } from '../../parts/problems.ts';
import { poolNamesQuery } from './secretQueries.ts';

/** What can be changed of a secret without its value. */
export type SecretDraft = { description: string; pools: string[] };

export const DRAFT_FIELDS = ['/description', '/pools'];

type Props = {
  draft: SecretDraft;
  onChange: (change: Partial<SecretDraft>) => void;
  errors: readonly FieldError[];
};

/** What a secret is for, and the pools whose runners may receive it. */
export function SecretFields({ draft, onChange, errors }: Props) {
  const { canAnywhere } = usePermissions();
  const mayRead = canAnywhere('jobtype:read') || canAnywhere('jobtype:write');
  const pools = useQuery({ ...poolNamesQuery, enabled: mayRead });
  const wrongPool = errors.find(({ pointer }) => pointer.startsWith('/pools'));
  return (
    <>
      <Textarea
        label="Description"
        value={draft.description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={errorAt(errors, '/description')}
        maxLength={1_000}
        autosize
        minRows={1}
        maxRows={6}
      />
      <TagsInput
        label="Pools"
        description="Runners of these pools may receive the value. A pool is trusted with its secrets: a runner can keep what it has received."
        placeholder={draft.pools.length === 0 ? 'None: no job gets the value' : ''}
        size="xs"
        data={pools.data ?? []}
        splitChars={[',', ' ', ';']}
        acceptValueOnBlur
        value={draft.pools}
        onChange={(chosen) => onChange({ pools: chosen })}
        error={wrongPool?.detail}
      />
    </>
  );
}
