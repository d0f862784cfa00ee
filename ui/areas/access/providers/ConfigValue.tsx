import { Exact } from '../../../parts/Exact.tsx';
import { MASK } from '../../../parts/mask.ts';
import classes from '../Access.module.css';

type Props = { value: unknown; isSecret: boolean };

/** A setting of a provider. Secrets are never shown. */
export function ConfigValue({ value, isSecret }: Props) {
  if (isSecret || value === MASK) return 'Stored, not shown';
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (Array.isArray(value) && value.every((each) => typeof each === 'string'))
    return value.some((each) => each.includes('\n')) ? (
      <>
        {value.map((each) => (
          <pre key={each} className={classes.pre}>
            {each}
          </pre>
        ))}
      </>
    ) : (
      <Exact text={value.join(', ')} />
    );
  if (typeof value !== 'string') return <code>{JSON.stringify(value)}</code>;
  if (value.includes('\n')) return <pre className={classes.pre}>{value}</pre>;
  return <Exact text={value} />;
}
