import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type SyntheticEvent } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { Time } from '../../parts/Time.tsx';
import { TimeField } from '../../parts/TimeField.tsx';
import classes from './Inventory.module.css';

const route = getRouteApi('/frame/inventory/$resource/$recordId');

/** Leads to the record as it was at a time, and back to now. */
export function TimeMachine({ at }: { at: string | undefined }) {
  const navigate = route.useNavigate();
  const [time, setTime] = useState<string | null>(null);
  if (at !== undefined)
    return (
      <div className={classes.then} role="status">
        <Icon name="history" size={16} />
        <span>
          As it was on <Time value={at} format="full" />
        </span>
        <Button variant="default" onClick={() => void navigate({ search: {} })}>
          Back to now
        </Button>
      </div>
    );
  const travel = (event: SyntheticEvent) => {
    event.preventDefault();
    if (time !== null) void navigate({ search: { at: time } });
  };
  return (
    <form className={classes.travel} onSubmit={travel}>
      <TimeField
        aria-label="Show the record as it was at"
        value={time}
        onChange={setTime}
        inputWrapperOrder={['input', 'description']}
      />
      <Button type="submit" variant="default" disabled={time === null}>
        Show as it was
      </Button>
    </form>
  );
}
