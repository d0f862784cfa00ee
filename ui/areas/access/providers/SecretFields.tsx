import { Button } from '@mantine/core';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { ValueField } from '../../../parts/form/ValueField.tsx';
import { labelOfField } from '../../../parts/format.ts';
import type { FieldError } from '../../../parts/problems.ts';
import type { Secrets } from './providerConfig.ts';
import type { Kind } from './providerQueries.ts';
import classes from '../Access.module.css';

type Props = {
  fields: Kind['secrets'];
  /** The names of those that the service has. */
  stored: readonly string[];
  /** The server changes, so that they must be typed again. */
  isMoved: boolean;
  values: Secrets;
  onChange: (values: Secrets) => void;
  errors: readonly FieldError[];
};

/** The secrets of a provider: typed into hidden fields, sent once, and never shown again. */
export function SecretFields({ fields, stored, isMoved, values, onChange, errors }: Props) {
  return fields.map(({ name, description }) => (
    <div key={name} className={classes.stack}>
      {values[name] === null ? (
        <p className={classes.muted}>
          {labelOfField(name)}: the stored value is removed when you save.
        </p>
      ) : (
        <ValueField
          label={labelOfField(name)}
          description={textOf(description, stored.includes(name), isMoved)}
          required={false}
          value={values[name] ?? ''}
          onChange={(value) => onChange({ ...values, [name]: value })}
          error={errorAt(errors, `/config/${name}`)}
        />
      )}
      {stored.includes(name) && (
        <div>
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() =>
              onChange({ ...values, [name]: values[name] === null ? undefined : null })
            }
          >
            {values[name] === null ? 'Keep the stored value' : 'Remove the stored value'}
          </Button>
        </div>
      )}
    </div>
  ));
}

function textOf(description = '', isStored: boolean, isMoved: boolean): string {
  const own = description.replace(/^Secret\.\s*/, '');
  const state = !isStored
    ? ''
    : isMoved
      ? 'The way to the server changes, so type it again.'
      : 'A value is stored. Leave it empty to keep it.';
  return [own, state].filter(Boolean).join(' ');
}
