import { Checkbox, Radio, Stack, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { eventTypesQuery, matchingTypes, type EventType } from '../../app/eventTypes.ts';
import { groupTypes, withTypes, type TypeGroup } from '../../app/typeGroups.ts';
import { formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { ALL_TYPES } from './draft.ts';
import classes from './Webhooks.module.css';

type Props = {
  value: readonly string[];
  onChange: (types: string[]) => void;
  error: string | undefined;
};

/** Chooses the events that a webhook receives: all, or some of the catalogue. */
export function EventTypePicker({ value, onChange, error }: Props) {
  const isAll = value.includes(ALL_TYPES);
  // What was chosen before "all" comes back with "these".
  const [before, setBefore] = useState<readonly string[]>(isAll ? [] : value);
  const choose = (kind: string) => {
    if (kind === 'all') {
      setBefore(value);
      onChange([ALL_TYPES]);
    } else onChange([...before]);
  };
  return (
    <div>
      <Radio.Group
        label="Events"
        required
        size="xs"
        value={isAll ? 'all' : 'some'}
        onChange={choose}
        error={error}
      >
        <Stack gap={10} mt={8}>
          <Radio
            size="xs"
            value="all"
            label="All event types, also those that later versions add"
          />
          <Radio size="xs" value="some" label="Only these" />
        </Stack>
      </Radio.Group>
      {!isAll && <Choice chosen={value} onChange={onChange} />}
    </div>
  );
}

type ChoiceProps = { chosen: readonly string[]; onChange: (types: string[]) => void };

function Choice({ chosen, onChange }: ChoiceProps) {
  const { data: types, error, refetch } = useQuery(eventTypesQuery);
  const [text, setText] = useState('');
  if (!types) return error ? <ProblemNote problem={error} retry={() => void refetch()} /> : null;
  const found = text.trim() === '' ? types : matchingTypes(types, text);
  return (
    <div className={classes.picker}>
      <TextInput
        aria-label="Search event types"
        placeholder="Search event types"
        leftSection={<Icon name="search" size={14} />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          // Enter would send the form; that of an input method does not.
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) event.preventDefault();
        }}
      />
      <p className={classes.muted} role="status">
        {chosen.length === 0
          ? 'None chosen'
          : `${formatNumberOf(chosen.length, 'type')} of ${types.length} chosen`}
        {found.length < types.length && `; ${found.length} found`}
      </p>
      {groupTypes(found).map((group) => (
        <Group
          key={group.name}
          group={group}
          chosen={chosen}
          onChange={onChange}
          isSearch={text.trim() !== ''}
        />
      ))}
    </div>
  );
}

type GroupProps = ChoiceProps & { group: TypeGroup<EventType>; isSearch: boolean };

/** The types of one area: all of them by one box, or each by its own. */
function Group({ group: { label, types }, chosen, onChange, isSearch }: GroupProps) {
  const names = types.map(({ type }) => type);
  const count = names.filter((type) => chosen.includes(type)).length;
  const [isOpened, setOpened] = useState(count > 0 && count < names.length);
  const isOpen = isSearch || isOpened;
  return (
    <div className={classes.group} role="group" aria-label={label}>
      <div className={classes.groupHead}>
        <Checkbox
          label={label}
          aria-label={`All of ${label}`}
          checked={count === names.length}
          indeterminate={count > 0 && count < names.length}
          onChange={() => onChange(withTypes(chosen, names, count < names.length))}
        />
        <button
          type="button"
          className={classes.unfold}
          aria-expanded={isOpen}
          aria-label={`${count} of ${names.length} types of ${label}`}
          disabled={isSearch}
          onClick={() => setOpened(!isOpened)}
        >
          {count} of {names.length}
          <Icon name={isOpen ? 'chevronUp' : 'chevronDown'} size={12} />
        </button>
      </div>
      {isOpen && (
        <div className={classes.types}>
          {types.map(({ type, summary }) => (
            <Checkbox
              key={type}
              label={<code>{type}</code>}
              description={summary}
              checked={chosen.includes(type)}
              onChange={(event) => onChange(withTypes(chosen, [type], event.currentTarget.checked))}
            />
          ))}
        </div>
      )}
    </div>
  );
}
