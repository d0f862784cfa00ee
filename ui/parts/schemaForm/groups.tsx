import { codeText } from '../CodeText.tsx';
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import { Icon } from '../icons.tsx';
import { IconButton } from '../PermissionButton.tsx';
import { initialValue } from './check.ts';
import {
  useDraft,
  useEmptyValue,
  useForm,
  type CommonProps,
  type FieldProps,
} from './formContext.ts';
import { childPointer, withKey } from './pointer.ts';
import { noLongerOffered, type Shape } from './shape.ts';
import classes from './SchemaForm.module.css';

type GroupProps = Pick<CommonProps, 'pointer' | 'label' | 'description' | 'isRequired'> & {
  children: ReactNode;
  actions?: ReactNode;
};

/** Fields that belong together, under their name. */
export function Group({ pointer, label, description, isRequired, actions, children }: GroupProps) {
  const { id, errorAt } = useForm();
  const error = errorAt(pointer);
  const errorId = `${id(pointer)}-error`;
  return (
    <fieldset
      id={id(pointer)}
      className={classes.group}
      tabIndex={-1}
      aria-describedby={error === undefined ? undefined : errorId}
    >
      <legend className={classes.legend}>
        {label}
        {isRequired && (
          <span className={classes.asterisk} aria-hidden="true">
            {' '}
            *
          </span>
        )}
      </legend>
      {description !== undefined && <p className={classes.description}>{codeText(description)}</p>}
      {children}
      {error !== undefined && (
        <p id={errorId} className={classes.error}>
          {error}
        </p>
      )}
      {actions}
    </fieldset>
  );
}

type PropertiesProps = {
  shape: Extract<Shape, { kind: 'object' }>;
  value: unknown;
  onChange: (value: unknown) => void;
  pointer: string;
};

/** The properties of an object, below each other. */
export function Properties({ shape, value, onChange, pointer }: PropertiesProps) {
  const { Field } = useForm();
  const own = isJsonObject(value) ? value : {};
  return (
    <>
      {shape.properties.map((property) => (
        <Field
          key={property.name}
          shape={property.shape}
          value={own[property.name]}
          onChange={(next) => onChange(withKey(value, property.name, next))}
          pointer={childPointer(pointer, property.name)}
          label={property.label}
          description={property.description}
          isRequired={property.isRequired}
          isReadOnly={property.isReadOnly}
        />
      ))}
    </>
  );
}

/** Adds a field before itself, and brings the focus to it. */
export function AddButton({ label, onClick }: { label: string; onClick: () => void }) {
  const { disabled } = useForm();
  const button = useRef<HTMLButtonElement>(null);
  const [added, setAdded] = useState(0);
  useEffect(() => {
    const before = added > 0 ? button.current?.previousElementSibling : undefined;
    before?.querySelector<HTMLElement>('input, select, textarea')?.focus();
  }, [added]);
  const add = () => {
    onClick();
    setAdded(added + 1);
  };
  return (
    <Button
      ref={button}
      variant="default"
      size="compact-xs"
      disabled={disabled}
      leftSection={<Icon name="plus" size={12} />}
      onClick={add}
    >
      {label}
    </Button>
  );
}

/** An object. One that need not be there is added and taken away; what was in it is not lost. */
export function ObjectField(props: FieldProps<'object'>) {
  const { shape, value, onChange, pointer, label, description, isRequired } = props;
  const { disabled } = useForm();
  const empty = useEmptyValue(shape, pointer, isRequired);
  const taken = useRef<unknown>(undefined);
  const isThere = isRequired || isJsonObject(value);
  const add = () => onChange(taken.current ?? initialValue(shape));
  const remove = () => {
    taken.current = value;
    onChange(empty);
  };
  return (
    <Group
      {...{ pointer, label, description, isRequired }}
      actions={
        isRequired ? undefined : isThere ? (
          <Button variant="subtle" size="compact-xs" disabled={disabled} onClick={remove}>
            Remove {label.toLowerCase()}
          </Button>
        ) : (
          <AddButton label={`Add ${label.toLowerCase()}`} onClick={add} />
        )
      }
    >
      {isThere && <Properties {...{ shape, value, onChange, pointer }} />}
    </Group>
  );
}

/** Stored values that are no choices any more: also after one takes them away, to be able to take that back. */
function useNoLongerOffered(
  { choices }: Extract<Shape, { kind: 'choices' }>,
  chosen: readonly unknown[],
): readonly unknown[] {
  const [seen, setSeen] = useState<readonly unknown[]>([]);
  const found = chosen.filter(
    (each) => !seen.includes(each) && !choices.some(({ value }) => value === each),
  );
  if (found.length > 0) setSeen([...seen, ...found]);
  return [...seen, ...found];
}

export function ChoicesField(props: FieldProps<'choices'>) {
  const { shape, value, onChange, pointer, isRequired } = props;
  const { disabled, touch } = useForm();
  const chosen: readonly unknown[] = Array.isArray(value) ? value : [];
  const unknown = useNoLongerOffered(shape, chosen);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const toggle = (choice: unknown) => {
    // In the order of the choices, so that the order of clicks makes no difference.
    const next = [...shape.choices.map((each) => each.value), ...unknown].filter(
      (each) => (each === choice) !== chosen.includes(each),
    );
    onChange(next.length === 0 && !isRequired ? empty : next);
    touch(pointer);
  };
  return (
    <Group {...props}>
      <div className={classes.choices}>
        {[
          ...shape.choices,
          ...unknown.map((each) => ({ value: each, label: noLongerOffered(each) })),
        ].map(({ value: choice, label }) => (
          <Checkbox
            key={label}
            label={label}
            checked={chosen.includes(choice)}
            disabled={disabled}
            onChange={() => toggle(choice)}
          />
        ))}
      </div>
    </Group>
  );
}

type Entry = { id: number; key: string; value: unknown };

const entriesOf = (value: unknown): Entry[] =>
  Object.entries(isJsonObject(value) ? value : {}).map(([key, each], id) => ({
    id,
    key,
    value: each,
  }));

/** The object of entries; those without a name, or with the name of another one, are not in it yet. */
const objectOf = (entries: readonly Entry[]): Record<string, unknown> =>
  Object.fromEntries(
    entries
      .filter(({ key }, at) => key !== '' && !entries.slice(0, at).some((each) => each.key === key))
      .map(({ key, value }) => [key, value]),
  );

/** What is wrong with the names of entries; undefined if all of them are in the object. */
function nameError(entries: readonly Entry[]): string | undefined {
  const object = objectOf(entries);
  const lost = entries.filter(({ key, value }) => !(key in object) || object[key] !== value);
  if (lost.some(({ key }) => key !== '')) return 'has a name twice';
  return lost.some(({ value }) => value !== undefined) ? 'has an entry without a name' : undefined;
}

function useEntries({ shape, value, onChange, pointer, isRequired }: FieldProps<'map'>) {
  const empty = useEmptyValue(shape, pointer, isRequired);
  const [state, setState] = useState({ entries: entriesOf(value), value });
  if (JSON.stringify(state.value) !== JSON.stringify(value))
    setState({ entries: entriesOf(value), value });
  const { entries } = state;
  useDraft(pointer, nameError(entries));
  const change = (next: Entry[]) => {
    const object = objectOf(next);
    const isEmpty = Object.keys(object).length === 0 && !isRequired;
    const sent = isEmpty ? empty : object;
    setState({ entries: next, value: sent });
    onChange(sent);
  };
  return {
    entries,
    add: () => {
      const id = Math.max(-1, ...entries.map((entry) => entry.id)) + 1;
      change([...entries, { id, key: '', value: initialValue(shape.value) }]);
    },
    remove: (at: number) => change(entries.filter((_, index) => index !== at)),
    set: (at: number, part: Partial<Entry>) =>
      change(entries.map((entry, index) => (index === at ? { ...entry, ...part } : entry))),
  };
}

/** An object with free names: an entry has a name and a value. */
export function MapField(props: FieldProps<'map'>) {
  const { shape, pointer, label } = props;
  const { disabled, id, Field } = useForm();
  const { entries, add, remove, set } = useEntries(props);
  const isFull = shape.max !== undefined && entries.length >= shape.max;
  return (
    <Group {...props} actions={!isFull && <AddButton label="Add an entry" onClick={add} />}>
      {entries.map((entry, at) => (
        <div key={entry.id} className={classes.entry}>
          <TextInput
            className={classes.key}
            id={`${id(pointer)}-name-${entry.id}`}
            aria-label={`Name of entry ${at + 1} of ${label.toLowerCase()}`}
            placeholder="Name"
            value={entry.key}
            disabled={disabled}
            onChange={({ currentTarget: { value } }) => set(at, { key: value })}
            spellCheck={false}
          />
          <div className={classes.entryField}>
            <Field
              shape={shape.value}
              value={entry.value}
              onChange={(value) => set(at, { value })}
              pointer={childPointer(pointer, entry.key)}
              label={`Value of ${entry.key === '' ? `entry ${at + 1}` : entry.key}`}
              isRequired
              isReadOnly={false}
              isInline
            />
          </div>
          {!disabled && (
            <IconButton
              icon="x"
              label={`Remove ${entry.key === '' ? `entry ${at + 1}` : entry.key}`}
              onClick={() => remove(at)}
            />
          )}
        </div>
      ))}
    </Group>
  );
}

/** One of several kinds of object. What was typed for one kind is there again when it is chosen again. */
export function VariantsField(props: FieldProps<'variants'>) {
  const { shape, value, onChange, pointer, label, isRequired } = props;
  const { id, disabled } = useForm();
  const empty = useEmptyValue(shape, pointer, isRequired);
  const typed = useRef(new Map<number, unknown>());
  const tag = isJsonObject(value) ? value[shape.tag] : undefined;
  const position = shape.variants.findIndex((variant) => variant.value === tag);
  const variant = shape.variants[position];
  const isUnknown = position < 0 && tag !== undefined;
  const none = isRequired ? 'Choose' : 'Not set';
  const choose = (next: number) => {
    if (position >= 0) typed.current.set(position, value);
    const chosen = shape.variants[next];
    const start = chosen && {
      ...(initialValue(chosen.shape) as object),
      [shape.tag]: chosen.value,
    };
    onChange(chosen ? (typed.current.get(next) ?? start) : empty);
  };
  return (
    <Group {...props}>
      <NativeSelect
        id={id(childPointer(pointer, shape.tag))}
        aria-label={`Kind of ${label.toLowerCase()}`}
        value={String(position)}
        disabled={disabled}
        onChange={({ currentTarget: { value: text } }) => choose(Number(text))}
        data={[
          ...(isRequired && position >= 0
            ? []
            : [{ value: '-1', label: isUnknown ? noLongerOffered(tag) : none }]),
          ...shape.variants.map((each, at) => ({ value: String(at), label: each.label })),
        ]}
      />
      {variant?.shape.kind === 'object' && (
        <Properties shape={variant.shape} {...{ value, onChange, pointer }} />
      )}
    </Group>
  );
}
