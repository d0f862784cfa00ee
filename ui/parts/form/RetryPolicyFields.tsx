import { NumberInput, TagsInput } from '@mantine/core';
import type { FieldError } from '../problems.ts';
import { errorAt } from './fieldErrors.ts';
import { describeRetries, withDefaults, type RetryPolicy } from './retryPolicy.ts';
import classes from './RetryPolicyFields.module.css';
import { typedNumber } from './typedNumber.ts';

type Props = {
  value: Partial<RetryPolicy>;
  onChange: (value: Partial<RetryPolicy>) => void;
  /** What holds for fields that are empty. */
  defaults: RetryPolicy | undefined;
  /** With pointers that start at the policy. */
  errors: readonly FieldError[];
};

const NUMBERS = [
  { name: 'maxAttempts', label: 'Attempts', min: 1, max: 100, suffix: '' },
  { name: 'initialIntervalSeconds', label: 'First delay', min: 0.05, max: 86_400, suffix: ' s' },
  {
    name: 'backoffCoefficient',
    label: 'Factor of each further delay',
    min: 1,
    max: 10,
    suffix: '',
  },
  { name: 'maxIntervalSeconds', label: 'Longest delay', min: 0.05, max: 86_400, suffix: ' s' },
] as const;

/** Without the field if it is undefined. */
function withField<Name extends keyof RetryPolicy>(
  policy: Partial<RetryPolicy>,
  name: Name,
  value: RetryPolicy[Name] | undefined,
): Partial<RetryPolicy> {
  const { [name]: _old, ...rest } = policy;
  return value === undefined ? rest : { ...policy, [name]: value };
}

/** The retry policy of a job. What is not set comes from the job type. */
export function RetryPolicyFields({ value, onChange, defaults, errors }: Props) {
  return (
    <div className={classes.fields}>
      <div className={classes.numbers}>
        {NUMBERS.map(({ name, label, min, max, suffix }) => (
          <NumberInput
            key={name}
            label={label}
            value={value[name] ?? ''}
            min={min}
            max={max}
            clampBehavior="none"
            decimalScale={name === 'maxAttempts' ? 0 : 2}
            suffix={suffix}
            placeholder={defaults && `${defaults[name]}${suffix}`}
            error={errorAt(errors, `/${name}`)}
            onChange={(typed) => {
              const next = typedNumber(typed);
              onChange(withField(value, name, next === '' ? undefined : next));
            }}
          />
        ))}
      </div>
      <TagsInput
        label="Error codes after which nothing is retried"
        size="xs"
        value={value.nonRetryableCodes ?? []}
        placeholder={value.nonRetryableCodes?.length ? '' : defaults?.nonRetryableCodes.join(', ')}
        error={errors.find(({ pointer }) => pointer.startsWith('/nonRetryableCodes'))?.detail}
        onChange={(codes) =>
          onChange(withField(value, 'nonRetryableCodes', codes.length === 0 ? undefined : codes))
        }
      />
      <p className={classes.words} aria-live="polite">
        {describeRetries(withDefaults(defaults, value))}
      </p>
    </div>
  );
}
