import { MultiSelect, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Empty } from '../../../parts/Empty.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { areaLabel, areaOf, differ } from './permissionMatrix.ts';
import { Sign } from './PermissionMatrix.tsx';
import { rolesQuery, type Permission, type Role } from './roleQueries.ts';
import { usePermissionNames } from './usePermissionNames.ts';
import access from '../Access.module.css';
import classes from './Roles.module.css';

const route = getRouteApi('/frame/access/compare-roles');

const PARENT = { label: 'Roles', to: '/access/roles' };
/** Without a choice, the first roles are shown; more than a few columns are hard to read. */
const FIRST = 5;
const MOST = 12;

/** Roles beside each other: which permissions and job types each has. */
export function CompareRolesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(rolesQuery);
  const all = data ?? [];
  const named = search.roles?.split(',').filter(Boolean) ?? [];
  const chosen =
    named.length > 0
      ? named.flatMap((id) => all.find((role) => role.id === id) ?? [])
      : all.slice(0, FIRST);
  const onlyDifferences = search.only === 'differences';
  return (
    <RecordPage parent={PARENT} title="Compare roles">
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <div className={classes.tools}>
        <MultiSelect
          label="Roles"
          size="xs"
          searchable
          hidePickedOptions
          maxValues={MOST}
          data={all.map(({ id, name }) => ({ value: id, label: name }))}
          value={chosen.map(({ id }) => id)}
          onChange={(ids) =>
            void navigate({
              search: { ...search, roles: ids.length === 0 ? undefined : ids.join(',') },
              replace: true,
            })
          }
        />
        <Switch
          label="Only differences"
          checked={onlyDifferences}
          onChange={(event) =>
            void navigate({
              search: { ...search, only: event.currentTarget.checked ? 'differences' : undefined },
              replace: true,
            })
          }
        />
      </div>
      {chosen.length > 0 && <Comparison roles={chosen} onlyDifferences={onlyDifferences} />}
    </RecordPage>
  );
}

type Props = { roles: readonly Role[]; onlyDifferences: boolean };

function Comparison({ roles, onlyDifferences }: Props) {
  const permissions = usePermissionNames();
  const has = (permission: Permission) => (role: Role) => role.permissions.includes(permission);
  const shown = permissions.filter(
    (permission) => !onlyDifferences || differ(roles, has(permission)),
  );
  const patterns = [...new Set(roles.flatMap(({ jobTypes }) => jobTypes))].sort();
  const shownPatterns = patterns.filter(
    (pattern) => !onlyDifferences || differ(roles, ({ jobTypes }) => jobTypes.includes(pattern)),
  );
  if (shown.length + shownPatterns.length === 0)
    return <Empty kind="nothing" title="These roles allow the same" />;
  const areas = [...new Set(shown.map(areaOf))];
  return (
    <div className={access.scroll} tabIndex={0} role="region" aria-label="Comparison">
      <table className={classes.compare}>
        <thead>
          <tr>
            <th scope="col">Permission</th>
            {roles.map(({ id, name }) => (
              <th key={id} scope="col">
                <AppLink to={recordPath(id, 'roles')}>{name}</AppLink>
              </th>
            ))}
          </tr>
        </thead>
        {areas.map((area) => (
          <Rows
            key={area}
            title={areaLabel(area)}
            roles={roles}
            names={shown.filter((permission) => areaOf(permission) === area)}
            has={({ permissions: all }, name) => all.some((permission) => permission === name)}
          />
        ))}
        {shownPatterns.length > 0 && (
          <Rows
            title="Job types granted by name"
            roles={roles}
            names={shownPatterns}
            has={({ jobTypes }, name) => jobTypes.includes(name)}
          />
        )}
      </table>
    </div>
  );
}

type RowsProps = {
  title: string;
  roles: readonly Role[];
  /** Permissions, or patterns of job types. */
  names: readonly string[];
  has: (role: Role, name: string) => boolean;
};

function Rows({ title, roles, names, has }: RowsProps) {
  return (
    <tbody>
      <tr className={classes.area}>
        <th scope="rowgroup" colSpan={roles.length + 1}>
          {title}
        </th>
      </tr>
      {names.map((name) => (
        <tr key={name} data-differs={differ(roles, (role) => has(role, name)) || undefined}>
          <th scope="row">
            <code>{name}</code>
          </th>
          {roles.map((role) => (
            <td key={role.id}>
              <Sign isOn={has(role, name)} permission={name} />
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}
