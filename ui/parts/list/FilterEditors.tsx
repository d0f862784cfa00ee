import { Button, Checkbox, Radio, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState, type SyntheticEvent } from 'react';
import { serverNow } from '../clock.ts';
import { formatCount, labelOfField } from '../format.ts';
import { labelOf, type Names } from '../names.ts';
import { problemFields } from '../problems.ts';
import { shortId } from '../recordIds.ts';
import { TimeField } from '../TimeField.tsx';
import {
  isTimePreset,
  joinValues,
  parseTimeRange,
  splitValues,
  TIME_PRESETS,
  withTypedTimes,
  type Filter,
  type Found,
} from './search.ts';
import type { Facet } from './useList.ts';
import classes from './Filters.module.css';

type Of<Kind extends Filter['kind']> = Extract<Filter, { kind: Kind }>;

type EditorProps<Kind extends Filter['kind']> = {
  filter: Of<Kind>;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  onClose: () => void;
};

/** More options than this have a field to search them. */
const MANY = 9;

export type Option = { value: string; label: string; count: number | undefined };

/** The values that a filter offers: its choices, or what the list counts, and what is chosen. */
export function optionsOf(
  filter: Of<'choice'>,
  facet: Facet | null | undefined,
  chosen: readonly string[],
  names: Names,
): Option[] {
  const counts = new Map(
    (facet?.values ?? []).map(({ value, count }) => [
      value === null ? 'none' : String(value),
      count,
    ]),
  );
  const known = filter.choices?.map(({ value }) => value) ?? [...counts.keys()];
  const labels = new Map(filter.choices?.map(({ value, label }) => [value, label]));
  return [...new Set([...known, ...chosen])].map((value) => ({
    value,
    label: labels.get(value) ?? labelOf(names, value) ?? choiceLabel(filter, value),
    count: facet ? (counts.get(value) ?? (filter.choices ? 0 : undefined)) : undefined,
  }));
}

/** Choices that the API fixes are words; counted values are shown as they are. */
export const choiceLabel = (filter: Of<'choice'>, value: string): string => {
  if (filter.choices) return labelOfField(value);
  return value === 'none' ? 'None' : shortId(value);
};

const toggled = (values: readonly string[], value: string): string | undefined => {
  const next = values.includes(value)
    ? values.filter((each) => each !== value)
    : [...values, value];
  return next.length === 0 ? undefined : joinValues(next);
};

type ChoiceProps = EditorProps<'choice'> & { facet: Facet | null | undefined; names: Names };

export function ChoiceEditor({ filter, value, onChange, facet, names }: ChoiceProps) {
  const [text, setText] = useState('');
  const chosen = splitValues(value);
  const options = optionsOf(filter, facet, chosen, names);
  const isMany = options.length > MANY;
  const wanted = text.trim().toLowerCase();
  const shown = options.filter(({ label }) => label.toLowerCase().includes(wanted));
  return (
    <div className={classes.editor}>
      {isMany && (
        <TextInput
          aria-label={`Search ${filter.label.toLowerCase()}`}
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
      <div className={classes.options} role="group" aria-label={filter.label}>
        {shown.map((option) => (
          <Checkbox
            key={option.value}
            checked={chosen.includes(option.value)}
            onChange={() => onChange(toggled(chosen, option.value))}
            label={
              <span className={classes.option}>
                <span>{option.label}</span>
                {option.count !== undefined && (
                  <span className={classes.count}>{formatCount(option.count)}</span>
                )}
              </span>
            }
          />
        ))}
        {shown.length === 0 && (
          <span className={classes.hint}>
            {filter.facet === true && facet === undefined ? 'Counting …' : 'No values'}
          </span>
        )}
      </div>
    </div>
  );
}

export function TextEditor({ filter, value, onChange, onClose }: EditorProps<'text'>) {
  const [text, setText] = useState(value ?? '');
  const apply = (event: SyntheticEvent) => {
    event.preventDefault();
    onChange(text.trim() === '' ? undefined : text.trim());
    onClose();
  };
  return (
    <form className={classes.editor} onSubmit={apply}>
      <TextInput
        label={filter.label}
        placeholder={filter.example}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        data-autofocus
        spellCheck={false}
      />
      <Button type="submit">Apply</Button>
    </form>
  );
}

type ReferenceProps = EditorProps<'reference'> & {
  names: Names;
  onFound: (found: readonly Found[]) => void;
};

export function ReferenceEditor({ filter, value, onChange, names, onFound }: ReferenceProps) {
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text.trim());
  const chosen = splitValues(value);
  const search = useQuery({
    queryKey: ['filter', filter.id, filter.of, wanted],
    queryFn: async ({ signal }) => {
      const found = await filter.find(wanted, signal);
      onFound(found);
      return found;
    },
    placeholderData: (old) => old,
    staleTime: 10_000,
  });
  const choose = (id: string) => onChange(toggled(chosen, id));
  const found = search.data ?? [];
  const others = chosen
    .filter((id) => !found.some((each) => each.id === id))
    .map((id): Found => ({ id, label: labelOf(names, id) ?? shortId(id) }));
  return (
    <div className={classes.editor}>
      <TextInput
        label={filter.label}
        placeholder="Search"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        data-autofocus
        spellCheck={false}
      />
      <div className={classes.options} role="group" aria-label={filter.label}>
        {[...others, ...found].map(({ id, label, detail }) => (
          <Checkbox
            key={id}
            checked={chosen.includes(id)}
            onChange={() => choose(id)}
            label={
              <span className={classes.option}>
                <span>{label}</span>
                {detail !== undefined && <span className={classes.count}>{detail}</span>}
              </span>
            }
          />
        ))}
        {search.isError && (
          <span className={classes.hint}>{problemFields(search.error).detail}</span>
        )}
        {search.isSuccess && found.length === 0 && (
          <span className={classes.hint}>Nothing found</span>
        )}
      </div>
    </div>
  );
}

const isoOf = (at: Date | undefined): string | null => at?.toISOString() ?? null;
const dateOf = (at: string | null): Date | undefined => (at === null ? undefined : new Date(at));

export function TimeEditor({ filter, value, onChange, onClose }: EditorProps<'time'>) {
  const isPreset = isTimePreset(value);
  const range = (isPreset ? undefined : parseTimeRange(value, new Date(serverNow()))) ?? {};
  const [from, setFrom] = useState(isoOf(range.from));
  const [to, setTo] = useState(isoOf(range.to));
  const isWrong = from !== null && to !== null && from >= to;
  const apply = (event: SyntheticEvent) => {
    event.preventDefault();
    if (isWrong) return;
    onChange(withTypedTimes(value, { from: dateOf(from), to: dateOf(to) }));
    onClose();
  };
  return (
    <form className={classes.editor} onSubmit={apply}>
      <Radio.Group
        aria-label={filter.label}
        value={isPreset ? value : ''}
        onChange={(preset) => {
          onChange(preset);
          setFrom(null);
          setTo(null);
        }}
      >
        <div className={classes.options}>
          {Object.entries(TIME_PRESETS).map(([name, { label }]) => (
            <Radio key={name} value={name} label={label} size="xs" />
          ))}
        </div>
      </Radio.Group>
      <TimeField label="From" value={from} onChange={setFrom} />
      <TimeField
        label="Until"
        value={to}
        error={isWrong && 'Must be after the start'}
        onChange={setTo}
      />
      <Button type="submit">Apply</Button>
    </form>
  );
}
