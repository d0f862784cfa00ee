import { Exact } from './Exact.tsx';
import { exactText } from './exact.ts';
import { personKey, personName, type Names } from './names.ts';
import { shortId } from './recordIds.ts';

type Props = {
  id: string | null | undefined;
  names?: Names | undefined;
  /** With the user name or the id in brackets, where others decide on what this person has done. */
  full?: boolean;
};

/** Who did something: the name of the account if it is known, with what is unique about it as its tooltip. */
export function Actor({ id, names, full = false }: Props) {
  if (id === null || id === undefined || id === '') return <span>–</span>;
  const [name, key] = [personName(names, id), personKey(names, id)];
  const title = [key === id ? undefined : key, name === id ? undefined : id].filter(Boolean);
  return (
    <bdi title={title.length > 0 ? exactText(title.join(', ')) : undefined}>
      <Exact text={name} />
      {full && key !== undefined && (
        <>
          {' '}
          (<Exact text={key === id ? shortId(id) : key} />)
        </>
      )}
    </bdi>
  );
}
