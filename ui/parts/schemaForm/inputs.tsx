import { NativeSelect, PasswordInput, Switch, Textarea, TextInput } from '@mantine/core';
import { useState, type ClipboardEvent } from 'react';
import { MASK } from '../mask.ts';
import { TimeField } from '../TimeField.tsx';
import { codeText } from '../CodeText.tsx';
import { formatNumber } from '../format.ts';
import { parseJson, parseJsonObject, parseNumber } from './check.ts';
import {
  useDraft,
  useEmptyValue,
  useForm,
  type CommonProps,
  type FieldProps,
} from './formContext.ts';
import { noLongerOffered, type Shape } from './shape.ts';
import classes from './SchemaForm.module.css';
import { cellText } from './pasted.ts';

/** What all inputs of a field have in common. */
function useInput({ pointer, label, description, isRequired, isInline = false }: CommonProps) {
  const { id, disabled, errorAt, touch } = useForm();
  return {
    id: id(pointer),
    disabled,
    error: errorAt(pointer),
    onBlur: () => touch(pointer),
    ...(isInline
      ? { 'aria-label': label }
      : { label, description: codeText(description), withAsterisk: isRequired }),
  };
}

const defaultText = ({ default: fallback }: Shape): string | undefined => {
  if (fallback === undefined || fallback === null || fallback === '') return undefined;
  return `Default: ${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}`;
};

/**
 * The text of a field whose value is read from it. Text that is no value stays in the field; a value
 * that comes from elsewhere replaces it.
 */
function useText(
  { value, onChange, pointer }: CommonProps,
  write: (value: unknown) => string,
  read: (text: string) => { value: unknown } | { error: string },
) {
  const [state, setState] = useState<{ text: string; value: unknown; error?: string }>({
    text: write(value),
    value,
  });
  // Compared as JSON: a value that was sent up and comes back is the same.
  if (JSON.stringify(state.value) !== JSON.stringify(value))
    setState({ text: write(value), value });
  useDraft(pointer, state.error);
  return {
    text: state.text,
    change: (text: string) => {
      const outcome = read(text);
      if ('error' in outcome) {
        // The value before it stays, so that the text is not taken for one from elsewhere.
        setState({ text, value, error: outcome.error });
        return;
      }
      setState({ text, value: outcome.value });
      onChange(outcome.value);
    },
  };
}

const hasLineBreak = (value: unknown): boolean => typeof value === 'string' && /[\r\n]/.test(value);

/**
 * Whether a text is entered in a field of several lines. One of one line would drop the line breaks of
 * its value and of what is pasted, so it is replaced then, and not changed back while one types.
 */
function useLines({ value, onChange }: Pick<CommonProps, 'value' | 'onChange'>) {
  const [isLong, setLong] = useState(hasLineBreak(value));
  const [isPasted, setPasted] = useState(false);
  if (!isLong && hasLineBreak(value)) setLong(true);
  return {
    hasLines: isLong,
    /** The field that replaces one into which text was pasted gets its focus. */
    autoFocus: isPasted,
    onPaste: (event: ClipboardEvent<HTMLInputElement>) => {
      const pasted = event.clipboardData.getData('text');
      // A cell of a spreadsheet ends with a line break.
      if (!hasLineBreak(pasted.trim())) return;
      event.preventDefault();
      const { value: text, selectionStart, selectionEnd } = event.currentTarget;
      const [start, end] = [selectionStart ?? text.length, selectionEnd ?? text.length];
      setPasted(true);
      onChange(text.slice(0, start) + pasted + text.slice(end));
    },
  };
}

/** Pastes a cell of a spreadsheet into a field that grows, without the line break that ends it. */
function pasteCell(
  event: ClipboardEvent<HTMLTextAreaElement>,
  onChange: (text: string) => void,
): void {
  const cell = cellText(event.clipboardData.getData('text'));
  const { value, selectionStart, selectionEnd } = event.currentTarget;
  if (cell === undefined || hasLineBreak(value)) return;
  event.preventDefault();
  onChange(value.slice(0, selectionStart) + cell + value.slice(selectionEnd));
}

function SecretInput(props: FieldProps<'text'>) {
  const { value, onChange, shape, isRequired, pointer } = props;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const { hadValue } = useForm();
  const isStored = value === MASK;
  const wasStored = hadValue(pointer);
  const { hasLines, ...lines } = useLines(props);
  const shared = {
    ...input,
    value: isStored || typeof value !== 'string' ? '' : value,
    placeholder: isStored ? 'Stored. Type to replace it.' : undefined,
    onChange: ({ currentTarget: { value: text } }: { currentTarget: { value: string } }) =>
      onChange(text !== '' ? text : wasStored ? MASK : empty),
  };
  if (hasLines)
    return (
      <Textarea
        {...shared}
        rows={8}
        autoComplete="off"
        spellCheck={false}
        autoFocus={lines.autoFocus}
        classNames={{ input: classes.hidden }}
      />
    );
  return (
    <PasswordInput
      {...shared}
      onPaste={lines.onPaste}
      autoComplete="new-password"
      visibilityToggleButtonProps={{ 'aria-label': 'Show what is typed' }}
    />
  );
}

function TimeInput(props: FieldProps<'text'>) {
  const { value, onChange, shape, pointer, isRequired } = props;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const time = typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : null;
  const utc = time === null ? '' : `${new Date(time).toISOString()}.`;
  return (
    <TimeField
      {...input}
      withSeconds
      value={time}
      onChange={(at) => onChange(at ?? empty)}
      rightSectionWidth={0}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      description={codeText([props.description, utc].filter(Boolean).join(' · '))}
    />
  );
}

export function TextField(props: FieldProps<'text'>) {
  const { value, onChange, shape, pointer, isRequired } = props;
  const { input: kind, example, minLength = 0, maxLength } = shape;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const { hasLines, autoFocus, onPaste } = useLines(props);
  if (kind === 'secret') return <SecretInput {...props} />;
  if (kind === 'time') return <TimeInput {...props} />;
  const emptied = isRequired && minLength === 0 ? '' : empty;
  const shared = {
    ...input,
    value: typeof value === 'string' ? value : '',
    placeholder: defaultText(shape) ?? example,
    onChange: ({ currentTarget: { value: text } }: { currentTarget: { value: string } }) =>
      onChange(text === '' ? emptied : text),
    spellCheck: kind === 'lines',
  };
  // Most texts without a limit are short: their field grows with them.
  const isUnlimited = kind === 'lines' && maxLength === undefined;
  if (kind === 'lines' || hasLines)
    return (
      <Textarea
        {...shared}
        {...{ autoFocus, minRows: isUnlimited ? 1 : 2 }}
        autosize
        maxRows={14}
        {...(isUnlimited && {
          onPaste: (event: ClipboardEvent<HTMLTextAreaElement>) => pasteCell(event, onChange),
        })}
      />
    );
  return (
    <TextInput
      {...shared}
      onPaste={onPaste}
      autoComplete="off"
      inputMode={kind === 'url' ? 'url' : 'text'}
      {...(kind !== 'line' && { classNames: { input: classes.mono } })}
    />
  );
}

function rangeText({ shape }: FieldProps<'number'>): string | undefined {
  const { minimum, maximum } = shape;
  if (minimum !== undefined && maximum !== undefined)
    return `${formatNumber(minimum)} to ${formatNumber(maximum)}`;
  if (minimum !== undefined) return `At least ${formatNumber(minimum)}`;
  return maximum === undefined ? undefined : `At most ${formatNumber(maximum)}`;
}

export function NumberField(props: FieldProps<'number'>) {
  const { shape, pointer, isRequired, description } = props;
  const empty = useEmptyValue(shape, pointer, isRequired);
  const range = rangeText(props);
  const input = useInput({
    ...props,
    description: [description, range].filter(Boolean).join(' '),
  });
  const { text, change } = useText(
    props,
    (value) => (typeof value === 'number' ? String(value) : ''),
    (typed) => (typed.trim() === '' ? { value: empty } : parseNumber(typed)),
  );
  return (
    <TextInput
      {...input}
      value={text}
      placeholder={defaultText(shape)}
      onChange={({ currentTarget: { value } }) => change(value)}
      inputMode={shape.isInteger ? 'numeric' : 'decimal'}
      autoComplete="off"
    />
  );
}

export function FlagField(props: FieldProps<'flag'>) {
  const { value, onChange, shape, pointer, isRequired } = props;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  if (isRequired) {
    const { withAsterisk, ...rest } = { withAsterisk: false, ...input };
    return (
      <Switch
        {...rest}
        checked={value === true}
        onChange={({ currentTarget: { checked } }) => onChange(checked)}
      />
    );
  }
  const fallback = typeof shape.default === 'boolean' ? (shape.default ? 'yes' : 'no') : undefined;
  return (
    <NativeSelect
      {...input}
      value={typeof value === 'boolean' ? String(value) : ''}
      onChange={({ currentTarget: { value: text } }) =>
        onChange(text === '' ? empty : text === 'true')
      }
      data={[
        { value: '', label: fallback === undefined ? 'Not set' : `Default: ${fallback}` },
        { value: 'true', label: 'Yes' },
        { value: 'false', label: 'No' },
      ]}
    />
  );
}

export function ChoiceField(props: FieldProps<'choice'>) {
  const { value, onChange, shape, pointer, isRequired } = props;
  const { choices } = shape;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const position = choices.findIndex((choice) => choice.value === value);
  const isUnknown = position < 0 && value !== undefined && value !== null;
  const none = isRequired ? 'Choose' : (defaultText(shape) ?? 'Not set');
  return (
    <NativeSelect
      {...input}
      // A value that is no choice any more is shown, not silently replaced.
      value={isUnknown ? 'unknown' : position < 0 ? '' : String(position)}
      onChange={({ currentTarget: { value: text } }) =>
        onChange(text === '' ? empty : choices[Number(text)]?.value)
      }
      data={[
        { value: '', label: none, disabled: isRequired && position >= 0 },
        ...(isUnknown ? [{ value: 'unknown', label: noLongerOffered(value), disabled: true }] : []),
        ...choices.map(({ label }, at) => ({ value: String(at), label })),
      ]}
    />
  );
}

const writeJson = (value: unknown): string =>
  value === undefined ? '' : JSON.stringify(value, null, 2);

export function JsonField(props: FieldProps<'json'>) {
  const { shape, pointer, isRequired } = props;
  const input = useInput(props);
  const empty = useEmptyValue(shape, pointer, isRequired);
  const { text, change } = useText(props, writeJson, (typed) => {
    if (pointer === '') return parseJsonObject(typed);
    const outcome = parseJson(typed);
    return 'value' in outcome && outcome.value === undefined ? { value: empty } : outcome;
  });
  return (
    <Textarea
      {...input}
      value={text}
      onChange={({ currentTarget: { value } }) => change(value)}
      autosize
      minRows={3}
      maxRows={24}
      spellCheck={false}
      placeholder={shape.isObject ? '{ }' : 'JSON'}
      classNames={{ input: classes.mono }}
    />
  );
}
