import { Checkbox } from '@mantine/core';
import { Icon } from '../../../parts/icons.tsx';
import { matrixOf, verbOf } from './permissionMatrix.ts';
import classes from './Roles.module.css';

type Props<P extends string> = {
  label: string;
  /** All that exist. */
  permissions: readonly P[];
  chosen: ReadonlySet<P>;
  /** Without it, the matrix only shows. */
  onChange?: ((permission: P, isOn: boolean) => void) | undefined;
  /** Why a permission cannot be added. */
  whyNot?: ((permission: P) => string | undefined) | undefined;
};

/** Permissions by area and verb. */
export function PermissionMatrix<P extends string>(props: Props<P>) {
  const { label, permissions, chosen } = props;
  return (
    <table className={classes.matrix} aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Area</th>
          <th scope="col">Read</th>
          <th scope="col">Write</th>
          <th scope="col">Others</th>
        </tr>
      </thead>
      <tbody>
        {matrixOf(permissions).map(({ area, label: name, common, others }) => (
          <tr key={area} data-empty={isNone([...common, ...others], chosen) || undefined}>
            <th scope="row">
              {name} <code>{area}</code>
            </th>
            {common.map((permission, index) => (
              <td key={permission ?? index}>
                {permission !== undefined && <Cell {...props} permission={permission} />}
              </td>
            ))}
            <td>
              <div className={classes.others}>
                {others.map((permission) => (
                  <Cell key={permission} {...props} permission={permission} named />
                ))}
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const isNone = <P,>(all: readonly (P | undefined)[], chosen: ReadonlySet<P>): boolean =>
  !all.some((permission) => permission !== undefined && chosen.has(permission));

type CellProps<P extends string> = Props<P> & { permission: P; named?: boolean };

function Cell<P extends string>(props: CellProps<P>) {
  const { permission, chosen, onChange, whyNot, named = false } = props;
  const isOn = chosen.has(permission);
  const text = named ? verbOf(permission) : undefined;
  if (!onChange) return <Sign isOn={isOn} permission={permission} text={text} />;
  const reason = isOn ? undefined : whyNot?.(permission);
  return (
    <Checkbox
      size="xs"
      aria-label={reason === undefined ? permission : `${permission}. ${reason}`}
      title={reason}
      label={text}
      checked={isOn}
      disabled={reason !== undefined}
      onChange={(event) => onChange(permission, event.currentTarget.checked)}
    />
  );
}

type SignProps = { isOn: boolean; permission: string; text?: string | undefined };

/** Whether a role has a permission, as a sign and a text for screen readers. */
export function Sign({ isOn, permission, text }: SignProps) {
  return (
    <span
      className={classes.sign}
      data-on={isOn || undefined}
      role="img"
      aria-label={isOn ? permission : `not ${permission}`}
      title={permission}
    >
      <Icon name={isOn ? 'check' : 'minus'} size={14} />
      {text}
    </span>
  );
}
