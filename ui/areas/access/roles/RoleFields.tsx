import { Button, TagsInput, TextInput } from '@mantine/core';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { usePermissions } from '../../../parts/permissions.tsx';
import type { FieldError } from '../../../parts/problems.ts';
import { PermissionMatrix } from './PermissionMatrix.tsx';
import { verbOf } from './permissionMatrix.ts';
import { useJobTypes } from '../../../app/jobTypes.ts';
import type { Permission } from './roleQueries.ts';
import { usePermissionNames } from './usePermissionNames.ts';
import classes from '../Access.module.css';

/** What can be changed of a role. */
export type RoleDraft = { name: string; permissions: Permission[]; jobTypes: string[] };

export const ROLE_FIELDS = ['/name', '/permissions', '/jobTypes'];

type Props = {
  draft: RoleDraft;
  onChange: (change: Partial<RoleDraft>) => void;
  errors: readonly FieldError[];
};

/** The name of a role, what it allows, and the job types that it names. */
export function RoleFields({ draft, onChange, errors }: Props) {
  const all = usePermissionNames();
  const { whyNot } = usePermissions();
  const chosen = new Set(draft.permissions);
  const wrong = errors.find(({ pointer }) => pointer.startsWith('/permissions'));
  // The order of the service: nothing changes if one is taken away and chosen again.
  const choose = (isChosen: (permission: Permission) => boolean) =>
    onChange({ permissions: all.filter(isChosen) });
  const mayAdd = (permission: Permission) => whyNot(permission, PLATFORM) === undefined;
  return (
    <>
      <TextInput
        label="Name"
        required
        maxLength={255}
        autoComplete="off"
        value={draft.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
        error={errorAt(errors, '/name')}
      />
      <div>
        <div className={classes.label}>Permissions</div>
        <p className={classes.muted}>
          You can add what you have yourself everywhere: a role can be granted everywhere.
        </p>
        <PermissionMatrix
          label="Permissions"
          permissions={all}
          chosen={chosen}
          onChange={(permission, isOn) =>
            choose((each) => (each === permission ? isOn : chosen.has(each)))
          }
          whyNot={(permission) => whyNot(permission, PLATFORM)}
        />
        {wrong && <p className={classes.error}>{wrong.detail}</p>}
        <Button
          variant="subtle"
          size="compact-xs"
          mt={4}
          onClick={() =>
            choose((each) => chosen.has(each) || (verbOf(each) === 'read' && mayAdd(each)))
          }
        >
          Add all that read
        </Button>
        <Button variant="subtle" size="compact-xs" mt={4} onClick={() => choose(() => false)}>
          None
        </Button>
      </div>
      <JobTypesField draft={draft} onChange={onChange} errors={errors} />
    </>
  );
}

function JobTypesField({ draft, onChange, errors }: Props) {
  // Types that a role must name before their jobs can be created.
  const granted = useJobTypes().data?.items.filter(({ access }) => access === 'granted') ?? [];
  const names = granted.map(({ name }) => name);
  const areas = names.map((name) => `${name.slice(0, name.indexOf('.'))}.*`);
  const wrong = errors.find(({ pointer }) => pointer.startsWith('/jobTypes'));
  return (
    <TagsInput
      label="Job types granted by name"
      description="A name such as net.port-audit, an area such as net.*, or *. Jobs of these types also need job:write, of this or another role. Types that are open to all need no name."
      placeholder={draft.jobTypes.length === 0 ? 'None' : ''}
      size="xs"
      data={[...new Set([...areas, ...names])].sort()}
      splitChars={[',', ' ', ';']}
      acceptValueOnBlur
      value={draft.jobTypes}
      onChange={(jobTypes) => onChange({ jobTypes })}
      error={wrong?.detail}
    />
  );
}
