import { SegmentedControl } from '@mantine/core';
import { useCallback, useId, useLayoutEffect, useMemo, useState } from 'react';
import type { FieldError } from '../problems.ts';
import { checkValue, fieldPointers } from './check.ts';
import { Field } from './Field.tsx';
import { FormProvider, type CustomField, type FormState } from './formContext.ts';
import { Properties } from './groups.tsx';
import { JsonField } from './inputs.tsx';
import { keysOf, nearestPointer, pointerBelow } from './pointer.ts';
import { shapeOf, type JsonSchema, type Shape } from './shape.ts';
import { labelOfField } from '../format.ts';
import classes from './SchemaForm.module.css';

type Props = {
  schema: JsonSchema;
  value: unknown;
  onChange: (value: unknown) => void;
  /** What the service found wrong. */
  errors?: readonly FieldError[] | undefined;
  /** Where the value is in the body of the request: the start of the pointers in `errors`. */
  pointer?: string | undefined;
  disabled?: boolean | undefined;
  /**
   * Called with true while a field has text that is no value, such as JSON that is cut short. The value
   * is then not what the form shows, and must not be sent.
   */
  onIncomplete: (isIncomplete: boolean) => void;
  /** Shows everything that is wrong, as after an attempt to send it. */
  showAll?: boolean | undefined;
  /** Fields that the page draws, by their pointers. */
  custom?: Readonly<Record<string, CustomField | undefined>> | undefined;
  /** Names the form for screen readers. */
  label: string;
};

/** Why an incomplete form is not sent. */
export const INCOMPLETE = 'A field of the payload is incomplete.';

const NO_ERRORS: readonly FieldError[] = [];
const NO_CUSTOM = {};

/** Text that is no value yet, by the pointers of its fields. */
function useDrafts() {
  const [drafts, setDrafts] = useState<Readonly<Record<string, string>>>({});
  const draft = useCallback(
    (pointer: string, detail: string | undefined) =>
      setDrafts((old) => {
        if (old[pointer] === detail) return old;
        const { [pointer]: _old, ...others } = old;
        return detail === undefined ? others : { ...others, [pointer]: detail };
      }),
    [],
  );
  const errors = useMemo(
    () => Object.entries(drafts).map(([pointer, detail]): FieldError => ({ pointer, detail })),
    [drafts],
  );
  return { draft, errors };
}

const valueAt = (value: unknown, pointer: string): unknown =>
  keysOf(pointer).reduce<unknown>(
    (at, key) => (at as Record<string, unknown> | null | undefined)?.[key],
    value,
  );

/** The errors of the service, at the fields that show them, until these fields are changed. */
function useServerErrors({ errors = NO_ERRORS, pointer = '', value }: Props, shape: Shape) {
  const [seen, setSeen] = useState({ errors, value });
  if (seen.errors !== errors) setSeen({ errors, value });
  return useMemo(() => {
    const shown = new Set(fieldPointers(shape, value));
    return errors.flatMap(({ pointer: full, detail }): FieldError[] => {
      const below = pointerBelow(pointer, full);
      if (below === undefined) return [];
      const at = nearestPointer(below, shown) ?? '';
      const isChanged =
        JSON.stringify(valueAt(seen.value, at)) !== JSON.stringify(valueAt(value, at));
      return isChanged ? [] : [{ pointer: at, detail }];
    });
  }, [errors, pointer, shape, value, seen]);
}

/** The names of a pointer's fields: `Headers › content-type`. */
const pathText = (pointer: string): string =>
  keysOf(pointer)
    .map((key) => (/^\d+$/.test(key) ? `${Number(key) + 1}` : labelOfField(key)))
    .join(' › ');

type SummaryProps = { errors: readonly FieldError[]; onGo: (pointer: string) => void };

/** What is wrong, with a way to each field. */
function Summary({ errors, onGo }: SummaryProps) {
  if (errors.length === 0) return null;
  return (
    <div className={classes.summary} role="alert">
      <strong>
        {errors.length === 1 ? 'One field needs a change' : `${errors.length} fields need a change`}
      </strong>
      <ul>
        {errors.map(({ pointer, detail }) => (
          <li key={`${pointer} ${detail}`}>
            <button type="button" onClick={() => onGo(pointer)}>
              {pathText(pointer) || 'The form'}
            </button>{' '}
            {detail}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Brings the focus to a field, or to the first control in it. */
function focusField(id: string): void {
  const field = document.getElementById(id);
  const control = field?.matches('input, select, textarea')
    ? field
    : field?.querySelector<HTMLElement>('input, select, textarea, button');
  (control ?? field)?.focus();
  field?.scrollIntoView({ block: 'center' });
}

/** Says so as long as the form is shown: another form begins complete. */
function useIncomplete(isIncomplete: boolean, onIncomplete: Props['onIncomplete']): void {
  useLayoutEffect(() => {
    if (!isIncomplete) return undefined;
    onIncomplete(true);
    return () => onIncomplete(false);
  }, [isIncomplete, onIncomplete]);
}

type FormOptions = Props & { shape: Shape };

/** What the fields share, and what is wrong. */
function useFormState(props: FormOptions) {
  const { value, shape, disabled = false, showAll = false, custom = NO_CUSTOM } = props;
  const base = useId();
  const [opened] = useState(value);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const drafts = useDrafts();
  const server = useServerErrors(props, shape);
  const local = useMemo(() => {
    const wrong = drafts.errors;
    const drafted = new Set(wrong.map(({ pointer }) => pointer));
    return [...wrong, ...checkValue(shape, value).filter(({ pointer }) => !drafted.has(pointer))];
  }, [shape, value, drafts.errors]);
  useIncomplete(drafts.errors.length > 0, props.onIncomplete);
  const shown = useMemo(
    () => [...server, ...local.filter(({ pointer }) => showAll || touched.has(pointer))],
    [server, local, showAll, touched],
  );
  const byPointer = useMemo(() => {
    const errors = new Map<string, string>();
    for (const { pointer, detail } of shown) if (!errors.has(pointer)) errors.set(pointer, detail);
    return errors;
  }, [shown]);
  const touch = useCallback(
    (pointer: string) => setTouched((old) => (old.has(pointer) ? old : new Set([...old, pointer]))),
    [],
  );
  const id = useCallback((pointer: string) => `${base}${pointer}`, [base]);
  const { draft } = drafts;
  const form = useMemo(
    (): FormState => ({
      Field,
      id,
      disabled,
      errorAt: (pointer) => byPointer.get(pointer),
      touch,
      draft,
      hadValue: (pointer) => valueAt(opened, pointer) !== undefined,
      custom,
    }),
    [id, disabled, byPointer, touch, draft, opened, custom],
  );
  const summary = useMemo(() => [...server, ...(showAll ? local : [])], [server, local, showAll]);
  return { form, summary, isDraft: drafts.errors.some(({ pointer }) => pointer === '') };
}

const ANY_JSON = { kind: 'json', isObject: true, nullable: false } as const;

/**
 * A form for the values of a JSON Schema. What no field fits, and all of it if one prefers, is entered as
 * JSON. Nothing that is typed is lost: not by errors, not by choosing another variant, not by JSON that
 * is incomplete.
 */
export function SchemaForm(props: Props) {
  const { schema, value, onChange, label } = props;
  const shape = useMemo(() => shapeOf(schema), [schema]);
  const [isJson, setJson] = useState(shape.kind !== 'object' && shape.kind !== 'variants');
  const { form, summary, isDraft } = useFormState({ ...props, shape });
  const whole = { pointer: '', label, isRequired: true, value, onChange };
  const canSwitch = shape.kind === 'object' || shape.kind === 'variants' || shape.kind === 'map';
  return (
    <FormProvider value={form}>
      <div className={classes.form} role="group" aria-label={label}>
        <Summary errors={summary} onGo={(pointer) => focusField(form.id(pointer))} />
        {canSwitch && (
          <SegmentedControl
            className={classes.switch}
            aria-label="How the values are entered"
            value={isJson ? 'json' : 'form'}
            // JSON that is incomplete would be lost with its field.
            disabled={isJson && isDraft}
            onChange={(next) => setJson(next === 'json')}
            data={[
              { value: 'form', label: 'Form' },
              { value: 'json', label: 'JSON' },
            ]}
          />
        )}
        {isJson && canSwitch ? (
          <JsonField {...whole} shape={ANY_JSON} />
        ) : shape.kind === 'object' ? (
          <Properties shape={shape} value={value} onChange={onChange} pointer="" />
        ) : (
          <Field {...whole} shape={shape} description={schema.description} isReadOnly={false} />
        )}
      </div>
    </FormProvider>
  );
}
