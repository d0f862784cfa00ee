import { Button, TextInput } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type SyntheticEvent } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { Time } from '../../parts/Time.tsx';
import classes from './Inventory.module.css';

const route = getRouteApi('/frame/inventory/$resource/$recordId');

/** Leads to the record as it was at a time, and back to now. */
export function TimeMachine({ at }: { at: string | undefined }) {
  const navigate = route.useNavigate();
  const [text, setText] = useState('');
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
    const time = new Date(text);
    if (!Number.isNaN(time.getTime())) void navigate({ search: { at: time.toISOString() } });
  };
  return (
    <form className={classes.travel} onSubmit={travel}>
      <TextInput
        type="datetime-local"
        aria-label="Show the record as it was at"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit" variant="default" disabled={text === ''}>
        Show as it was
      </Button>
    </form>
  );
}
