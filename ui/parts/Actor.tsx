import { personName, type Names } from './names.ts';

type Props = { id: string | null | undefined; names?: Names | undefined };

/** Who did something: the name of the account if it is known, with the id as its tooltip. */
export function Actor({ id, names }: Props) {
  if (id === null || id === undefined || id === '') return <span>–</span>;
  const name = personName(names, id);
  return <span title={name === id ? undefined : id}>{name}</span>;
}
