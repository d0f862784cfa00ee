import type { FieldError } from '../../../parts/problems.ts';
import { SchemaForm } from '../../../parts/schemaForm/SchemaForm.tsx';
import { PROVIDER_KINDS } from './providerFilters.ts';
import type { Kind } from './providerQueries.ts';

type Props = {
  kind: Kind;
  config: unknown;
  onChange: (config: unknown) => void;
  errors: readonly FieldError[];
  onIncomplete: (isIncomplete: boolean) => void;
};

/** The settings of a provider without its secrets. */
export function ConfigForm({ kind, config, onChange, errors, onIncomplete }: Props) {
  const isSecret = ({ pointer }: FieldError) =>
    kind.secrets.some(({ name }) => pointer === `/config/${name}`);
  return (
    <SchemaForm
      label={`Settings of ${PROVIDER_KINDS[kind.kind] ?? kind.kind}`}
      schema={kind.schema}
      value={config}
      onChange={onChange}
      errors={errors.filter((error) => !isSecret(error))}
      pointer="/config"
      onIncomplete={onIncomplete}
    />
  );
}
