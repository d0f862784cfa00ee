import { createContext, use, useLayoutEffect, type ComponentType, type ReactNode } from 'react';
import type { Shape } from './shape.ts';

/** What a page draws instead of a field, such as a list of backups for the id of one. */
export type CustomField = (field: {
  id: string;
  label: string;
  value: unknown;
  onChange: (value: unknown) => void;
  error: string | undefined;
  disabled: boolean;
}) => ReactNode;

/** What every field gets. */
export type CommonProps = {
  value: unknown;
  onChange: (value: unknown) => void;
  pointer: string;
  label: string;
  description?: string | undefined;
  isRequired: boolean;
  /** In a list or a map the label is only for screen readers. */
  isInline?: boolean | undefined;
};

/** What each kind of field gets. */
export type FieldProps<Kind extends Shape['kind']> = CommonProps & {
  shape: Extract<Shape, { kind: Kind }>;
};

export type AnyFieldProps = CommonProps & { shape: Shape; isReadOnly: boolean };

/** What the fields of a form share. */
export type FormState = {
  /** Draws a field inside another one. It is here, since each imports the other otherwise. */
  Field: ComponentType<AnyFieldProps>;
  id: (pointer: string) => string;
  disabled: boolean;
  /** What is wrong with a field, if it is to be shown now. */
  errorAt: (pointer: string) => string | undefined;
  /** The field was left: its errors are shown from now on. */
  touch: (pointer: string) => void;
  /** Notes text that is no value, or that it is one again. */
  draft: (pointer: string, detail: string | undefined) => void;
  /** True if the record had the field when the form was opened: emptying it means null, not absent. */
  hadValue: (pointer: string) => boolean;
  custom: Readonly<Record<string, CustomField | undefined>>;
};

const FormContext = createContext<FormState | undefined>(undefined);

export const FormProvider = FormContext.Provider;

export function useForm(): FormState {
  const form = use(FormContext);
  if (!form) throw new Error('A field is outside its form');
  return form;
}

/**
 * Notes that a field shows what is no value, and why: as long as it is there, and where it is. An entry of a list
 * has another pointer after the one before it is taken away.
 */
export function useDraft(pointer: string, detail: string | undefined): void {
  const { draft } = useForm();
  // Before the browser handles the next key, such as Enter: the form must not be sent then.
  useLayoutEffect(() => {
    if (detail === undefined) return undefined;
    draft(pointer, detail);
    return () => draft(pointer, undefined);
  }, [draft, pointer, detail]);
}

/** An empty field: null where that means to take the value away, else absent. */
export const useEmptyValue = (
  shape: Shape,
  pointer: string,
  isRequired: boolean,
): null | undefined => {
  const { hadValue } = useForm();
  return shape.nullable && (isRequired || hadValue(pointer)) ? null : undefined;
};
