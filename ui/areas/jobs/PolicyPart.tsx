import { Collapse, UnstyledButton } from '@mantine/core';
import type { RetryPolicy } from '../../parts/form/retryPolicy.ts';
import { RetryPolicyFields } from '../../parts/form/RetryPolicyFields.tsx';
import { Icon } from '../../parts/icons.tsx';
import type { FieldError } from '../../parts/problems.ts';
import classes from './Jobs.module.css';

type Props = {
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
  value: Partial<RetryPolicy>;
  onChange: (value: Partial<RetryPolicy>) => void;
  defaults: RetryPolicy;
  errors: readonly FieldError[];
};

/** The retry policy of a new job, folded away: that of its type is right most of the time. */
export function PolicyPart({ isOpen, onOpen, value, onChange, defaults, errors }: Props) {
  return (
    <div>
      <UnstyledButton
        aria-expanded={isOpen}
        className={classes.disclosure}
        onClick={() => onOpen(!isOpen)}
      >
        <Icon name={isOpen ? 'chevronDown' : 'chevronRight'} size={14} /> Retry policy
      </UnstyledButton>
      <Collapse expanded={isOpen}>
        <RetryPolicyFields value={value} onChange={onChange} defaults={defaults} errors={errors} />
      </Collapse>
    </div>
  );
}
