import { SegmentedControl } from '@mantine/core';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../../parts/problems.ts';
import { RecordPicker } from '../../../parts/records/RecordPicker.tsx';
import { TenantField } from '../TenantField.tsx';
import { SCOPE_LEVELS, type ScopeDraft } from './scopes.ts';
import classes from '../Access.module.css';

type Props = {
  label: string;
  value: ScopeDraft;
  onChange: (value: ScopeDraft) => void;
  errors: readonly FieldError[];
};

/** Where something holds: everywhere, or at a tenant, a site or a device. */
export function ScopeField({ label, value, onChange, errors }: Props) {
  const { level, tenantId, siteId, deviceId } = value;
  const change = (fields: Partial<ScopeDraft>) => onChange({ ...value, ...fields });
  return (
    <div className={classes.stack} role="group" aria-label={label}>
      <div>
        <div className={classes.label}>{label}</div>
        <SegmentedControl
          aria-label={label}
          data={[...SCOPE_LEVELS]}
          value={level}
          onChange={(next) => change({ level: next })}
        />
      </div>
      {level === 'tenant' && (
        <TenantField
          required
          value={tenantId}
          onChange={(next) => change({ tenantId: next })}
          error={errorAt(errors, '/tenantId')}
        />
      )}
      {level === 'site' && (
        <RecordPicker
          resource="sites"
          label="Site"
          withAsterisk
          value={siteId}
          onChange={(next) => change({ siteId: next })}
          error={errorAt(errors, '/siteId')}
        />
      )}
      {level === 'device' && (
        <RecordPicker
          resource="devices"
          label="Device"
          withAsterisk
          value={deviceId}
          onChange={(next) => change({ deviceId: next })}
          error={errorAt(errors, '/deviceId')}
        />
      )}
    </div>
  );
}
