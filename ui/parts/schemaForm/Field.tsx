import { codeText } from '../CodeText.tsx';
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { canShow } from './check.ts';
import { useForm, type AnyFieldProps } from './formContext.ts';
import { ChoicesField, MapField, ObjectField, VariantsField } from './groups.tsx';
import { ListField } from './ListField.tsx';
import { ReferenceField } from './ReferenceField.tsx';
import { ChoiceField, FlagField, JsonField, NumberField, TextField } from './inputs.tsx';

const shown = (value: unknown): string =>
  value === undefined || value === null
    ? ''
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);

/** The field of a value, as its shape says. */
export function Field({ shape, isReadOnly, ...props }: AnyFieldProps) {
  const form = useForm();
  const { pointer, label, value, onChange, description } = props;
  const [isMisfit, setMisfit] = useState(false);
  // It stays so while one corrects the value.
  if (!isMisfit && !canShow(shape, value)) setMisfit(true);
  const custom = form.custom[pointer];
  if (custom)
    return custom({
      id: form.id(pointer),
      label,
      value,
      onChange,
      error: form.errorAt(pointer),
      disabled: form.disabled || isReadOnly,
    });
  if (isReadOnly || shape.kind === 'constant') {
    const text = shown(value ?? (shape.kind === 'constant' ? shape.value : undefined));
    if (text === '') return null;
    return (
      <TextInput
        id={form.id(pointer)}
        label={label}
        description={codeText(description)}
        value={text}
        readOnly
        disabled
      />
    );
  }
  if (isMisfit)
    return (
      <JsonField {...props} shape={{ kind: 'json', isObject: false, nullable: shape.nullable }} />
    );
  switch (shape.kind) {
    case 'text':
      return <TextField {...props} shape={shape} />;
    case 'reference':
      return <ReferenceField {...props} shape={shape} />;
    case 'number':
      return <NumberField {...props} shape={shape} />;
    case 'flag':
      return <FlagField {...props} shape={shape} />;
    case 'choice':
      return <ChoiceField {...props} shape={shape} />;
    case 'choices':
      return <ChoicesField {...props} shape={shape} />;
    case 'list':
      return <ListField {...props} shape={shape} />;
    case 'map':
      return <MapField {...props} shape={shape} />;
    case 'object':
      return <ObjectField {...props} shape={shape} />;
    case 'variants':
      return <VariantsField {...props} shape={shape} />;
    case 'json':
      return <JsonField {...props} shape={shape} />;
  }
}
