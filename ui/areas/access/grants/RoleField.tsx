import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { problemFields } from '../../../parts/problems.ts';
import { RoleAllows } from '../roles/RoleAllows.tsx';
import { rolesQuery } from '../roles/roleQueries.ts';

type Props = {
  value: string | undefined;
  onChange: (roleId: string) => void;
  error?: string | undefined;
};

/** Chooses a role, and shows what it allows. */
export function RoleField({ value, onChange, error }: Props) {
  const { data, error: problem } = useQuery(rolesQuery);
  const options = (data ?? []).map(({ id, name }) => ({
    value: id,
    label: name.toLowerCase() === id ? name : `${name} (${id})`,
  }));
  return (
    <>
      <Select
        label="Role"
        size="xs"
        required
        searchable
        placeholder="Search roles"
        data={options}
        value={value ?? null}
        onChange={(id) => id !== null && onChange(id)}
        allowDeselect={false}
        nothingFoundMessage="Nothing found"
        error={error ?? (problem ? problemFields(problem).detail : undefined)}
      />
      {value !== undefined && <RoleAllows roleId={value} folded />}
    </>
  );
}
