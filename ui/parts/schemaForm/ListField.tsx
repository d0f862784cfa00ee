import { VisuallyHidden } from '@mantine/core';
import { useLayoutEffect, useRef, useState } from 'react';
import { IconButton } from '../PermissionButton.tsx';
import { initialValue } from './check.ts';
import { useEmptyValue, useForm, type FieldProps } from './formContext.ts';
import { AddButton, Group } from './groups.tsx';
import { moved } from './moved.ts';
import { childPointer } from './pointer.ts';
import classes from './SchemaForm.module.css';

/** Keys of the entries of a list: an entry keeps its field when others are taken away or moved. */
function useEntryKeys(count: number) {
  const [keys, setKeys] = useState<readonly number[]>([]);
  if (keys.length !== count) {
    const more = Array.from(
      { length: Math.max(count - keys.length, 0) },
      (_, at) => Math.max(-1, ...keys) + 1 + at,
    );
    setKeys([...keys.slice(0, count), ...more]);
  }
  return {
    keys,
    remove: (at: number) => setKeys(keys.filter((_, index) => index !== at)),
    move: (from: number, to: number) => setKeys(moved(keys, from, to)),
  };
}

/** Moves entries. The focus stays on what has moved them: a browser drops it from what is put elsewhere. */
function useMoves(move: (from: number, to: number) => void, label: string) {
  const focused = useRef<HTMLElement>(null);
  const [said, setSaid] = useState('');
  useLayoutEffect(() => {
    focused.current?.focus();
    focused.current = null;
  });
  const moveTo = (from: number, to: number) => {
    focused.current = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    setSaid(`${label} ${from + 1} is ${label.toLowerCase()} ${to + 1} now`);
    move(from, to);
  };
  return { said, moveTo };
}

type MoveButtonsProps = {
  name: string;
  at: number;
  last: number;
  moveTo: (from: number, to: number) => void;
};

function MoveButtons({ name, at, last, moveTo }: MoveButtonsProps) {
  return (
    <>
      <IconButton
        icon="chevronUp"
        label={`Move ${name} up`}
        reason={at === 0 ? 'It is the first one.' : undefined}
        onClick={() => moveTo(at, at - 1)}
      />
      <IconButton
        icon="chevronDown"
        label={`Move ${name} down`}
        reason={at === last ? 'It is the last one.' : undefined}
        onClick={() => moveTo(at, at + 1)}
      />
    </>
  );
}

/** Entries below each other, which can be moved and taken away. */
export function ListField(props: FieldProps<'list'>) {
  const { shape, value, onChange, pointer, label, isRequired } = props;
  const { disabled, Field } = useForm();
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const empty = useEmptyValue(shape, pointer, isRequired);
  const { keys, remove, move } = useEntryKeys(entries.length);
  const change = (next: readonly unknown[]) =>
    onChange(next.length === 0 && !isRequired ? empty : next);
  const { said, moveTo } = useMoves((from, to) => {
    move(from, to);
    change(moved(entries, from, to));
  }, label);
  const isFull = shape.max !== undefined && entries.length >= shape.max;
  const add = () => change([...entries, initialValue(shape.item) ?? null]);
  const last = entries.length - 1;
  return (
    <Group {...props} actions={!isFull && <AddButton label="Add an entry" onClick={add} />}>
      <VisuallyHidden role="status">{said}</VisuallyHidden>
      {entries.map((entry, at) => (
        <div key={keys[at] ?? `new ${at}`} className={classes.entry}>
          <div className={classes.entryField}>
            <Field
              shape={shape.item}
              value={entry ?? undefined}
              onChange={(next) => change(entries.with(at, next ?? null))}
              pointer={childPointer(pointer, at)}
              label={`${label} ${at + 1}`}
              isRequired
              isReadOnly={false}
              isInline
            />
          </div>
          {!disabled && last > 0 && (
            <MoveButtons name={`${label.toLowerCase()} ${at + 1}`} {...{ at, last, moveTo }} />
          )}
          {!disabled && (
            <IconButton
              icon="x"
              label={`Remove ${label.toLowerCase()} ${at + 1}`}
              onClick={() => {
                remove(at);
                change(entries.filter((_, index) => index !== at));
              }}
            />
          )}
        </div>
      ))}
    </Group>
  );
}
