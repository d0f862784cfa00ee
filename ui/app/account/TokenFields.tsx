import { Button, NumberInput, Select, Switch, TagsInput, TextInput } from '@mantine/core';
import type { Schemas } from '../api.ts';
import { useJobTypes } from '../jobTypes.ts';
import { useBusyDialog } from '../../parts/Dialog.tsx';
import { zoneName } from '../../parts/localInput.ts';
import { usePreferences } from '../../parts/preferences.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import type { FieldsProps, Form, Owner } from './fields.ts';
import { PermissionPicker } from './PermissionPicker.tsx';
import { ScopePicker } from './ScopePicker.tsx';
import { EXPIRIES, missingIn } from './tokenForm.ts';
import classes from './Account.module.css';
import { errorsUnder } from '../../parts/form/fieldErrors.ts';
import { typedNumber } from '../../parts/form/typedNumber.ts';
import { problemFields } from '../../parts/problems.ts';

type Props = {
  form: Form;
  onChange: (form: Form) => void;
  /** The token that is narrowed; undefined for a new one. */
  token?: Schemas['Token'];
  owner: Owner;
  submit: string;
  onSubmit: () => void;
  busy: boolean;
  problem: unknown;
  onCancel: () => void;
};

const SHOWN = [
  'name',
  'expiresAt',
  'permissions',
  'readOnly',
  'resourceScopes',
  'allowedNetworks',
  'jobTypes',
  'requestsPerMinute',
].map((field) => `/${field}`);

/** The errors of fields, by the first part of their pointers. */
const errorsOf = (problem: unknown) => (field: string) => {
  const own = errorsUnder(problemFields(problem).errors, `/${field}`);
  return own.length === 0 ? undefined : own.map(({ detail }) => detail).join('; ');
};

/** What a token is called, until when it is valid, and what limits it. */
export function TokenFields(props: Props) {
  const { form, onChange, token, owner, submit, onSubmit, busy, problem, onCancel } = props;
  useBusyDialog(busy);
  const errorOf = errorsOf(problem);
  const change = (fields: Partial<Form>) => onChange({ ...form, ...fields });
  const fields = { form, change, errorOf, owner };
  const missing = missingIn(form);
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (missing === undefined) onSubmit();
      }}
    >
      {token && (
        <p className={classes.text}>
          The limits of a token can be narrowed, never widened. To allow more, create another token.
        </p>
      )}
      <NameAndExpiry {...fields} token={token} />
      <PermissionPicker {...fields} allowed={token?.permissions ?? null} />
      <ScopePicker {...fields} />
      <OtherLimits {...fields} />
      <RefusedNote problem={problem} shown={SHOWN} />
      <div className={classes.buttons}>
        {missing !== undefined && (
          <span className={classes.note} role="status">
            {missing}
          </span>
        )}
        <Button variant="default" onClick={onCancel} disabled={busy}>
          Back
        </Button>
        <Button type="submit" loading={busy} disabled={missing !== undefined}>
          {submit}
        </Button>
      </div>
    </form>
  );
}

type ExpiryProps = FieldsProps & { token: Schemas['Token'] | undefined };

function NameAndExpiry({ form, change, errorOf, token }: ExpiryProps) {
  const { utc } = usePreferences();
  const choices = token ? [{ value: 'keep', label: 'As it is' }, ...EXPIRIES] : EXPIRIES;
  return (
    <div className={classes.columns}>
      <TextInput
        label="Name"
        description="What uses the token"
        data-autofocus
        required
        withAsterisk={false}
        maxLength={255}
        autoComplete="off"
        value={form.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
        error={errorOf('name')}
      />
      <Select
        label="Expires"
        description={token ? 'Not later than it does already' : 'Can be made earlier, never later'}
        data={choices}
        value={form.expiry}
        onChange={(expiry) => expiry !== null && change({ expiry })}
        allowDeselect={false}
        error={errorOf('expiresAt')}
      />
      {form.expiry === 'date' && (
        <TextInput
          type="date"
          label="Day"
          description={`It is valid until the end of it, in ${zoneName(utc)}`}
          value={form.date}
          onChange={(event) => change({ date: event.currentTarget.value })}
        />
      )}
    </div>
  );
}

/** Names of job types, and their areas with a star. Readers of nothing but jobs may know them. */
function useTypePatterns(): string[] {
  const { data } = useJobTypes();
  const names = data?.items.map(({ name }) => name) ?? [];
  const areas = names.map((name) => `${name.slice(0, name.indexOf('.'))}.*`);
  return [...new Set([...areas, ...names])].sort();
}

function OtherLimits({ form, change, errorOf }: FieldsProps) {
  const jobTypes = useTypePatterns();
  return (
    <>
      <Switch
        label="Read only"
        description="Only permissions that read, and only requests that change nothing"
        checked={form.readOnly}
        onChange={(event) => change({ readOnly: event.currentTarget.checked })}
        error={errorOf('readOnly')}
      />
      <div className={classes.columns}>
        <TagsInput
          label="Networks"
          description="CIDRs of the clients. Empty: all addresses"
          placeholder={form.networks.length === 0 ? '10.20.0.0/16' : ''}
          size="xs"
          splitChars={[',', ' ', ';']}
          acceptValueOnBlur
          value={[...form.networks]}
          onChange={(networks) => change({ networks })}
          error={errorOf('allowedNetworks')}
        />
        <TagsInput
          label="Job types"
          description="Only jobs of these types. Empty: all types"
          placeholder={form.jobTypes.length === 0 ? 'inventory.*' : ''}
          size="xs"
          data={jobTypes}
          splitChars={[',', ' ', ';']}
          acceptValueOnBlur
          value={[...form.jobTypes]}
          onChange={(chosen) => change({ jobTypes: chosen })}
          error={errorOf('jobTypes')}
        />
        <NumberInput
          label="Requests a minute"
          description="Empty: the limit of the installation"
          min={1}
          max={1_000_000}
          allowDecimal={false}
          clampBehavior="none"
          value={form.requestsPerMinute ?? ''}
          onChange={(value) => {
            const requestsPerMinute = typedNumber(value);
            change({ requestsPerMinute: requestsPerMinute === '' ? null : requestsPerMinute });
          }}
          error={errorOf('requestsPerMinute')}
        />
      </div>
    </>
  );
}
