import { Button, Checkbox, Radio, Stack } from '@mantine/core';
import type { Schemas } from '../api.ts';
import { useSession } from '../session/useSession.ts';
import { labelOfField } from '../../parts/format.ts';
import type { FieldsProps } from './fields.ts';
import classes from './Account.module.css';

type Permission = Schemas['Permission'];

const areaOf = (permission: string): string => permission.slice(0, permission.indexOf(':'));
const verbOf = (permission: string): string => permission.slice(permission.indexOf(':') + 1);

type Props = FieldsProps & {
  /** Those of the token before; null for all. */
  allowed: readonly Permission[] | null;
};

/** All permissions of the owner, or some of them. What the owner does not have is not offered. */
export function PermissionPicker({ form, change, errorOf, owner, allowed }: Props) {
  const { summary, canAnywhere } = useSession();
  const held = (Object.keys(summary.permissions) as Permission[]).filter(
    (permission) => allowed?.includes(permission) ?? canAnywhere(permission),
  );
  const { permissions } = form;
  return (
    <div>
      <Radio.Group
        label="Permissions"
        description={`As far as ${owner === 'you' ? 'you have' : 'the account has'} them at the time of the request`}
        size="xs"
        value={permissions === null ? 'all' : 'some'}
        onChange={(value) => change({ permissions: value === 'all' ? null : [] })}
        error={errorOf('permissions')}
      >
        <Stack gap={10} mt={8}>
          {allowed === null && (
            <Radio
              size="xs"
              value="all"
              label={owner === 'you' ? 'All that you have' : 'All that the account has'}
            />
          )}
          <Radio size="xs" value="some" label="Only these" />
        </Stack>
      </Radio.Group>
      {permissions !== null && (
        <Choice
          held={held}
          chosen={permissions}
          onChange={(chosen) => change({ permissions: chosen })}
        />
      )}
    </div>
  );
}

type ChoiceProps = {
  held: readonly Permission[];
  chosen: readonly Permission[];
  onChange: (chosen: Permission[]) => void;
};

function Choice({ held, chosen, onChange }: ChoiceProps) {
  const areas = [...new Set(held.map(areaOf))];
  const toggle = (permission: Permission, isOn: boolean) =>
    onChange(held.filter((each) => (each === permission ? isOn : chosen.includes(each))));
  return (
    <>
      <div className={classes.areas}>
        {areas.map((area) => (
          <fieldset key={area} className={classes.area}>
            <legend>{labelOfField(area)}</legend>
            {held
              .filter((permission) => areaOf(permission) === area)
              .map((permission) => (
                <Checkbox
                  key={permission}
                  label={verbOf(permission)}
                  aria-label={permission}
                  checked={chosen.includes(permission)}
                  onChange={(event) => toggle(permission, event.currentTarget.checked)}
                />
              ))}
          </fieldset>
        ))}
      </div>
      <Button
        variant="subtle"
        size="compact-xs"
        mt={4}
        onClick={() => onChange(held.filter((permission) => verbOf(permission) === 'read'))}
      >
        All that read
      </Button>
    </>
  );
}
