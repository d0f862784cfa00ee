import { AppLink } from './AppLink.tsx';
import { Exact } from './Exact.tsx';
import { exactText } from './exact.ts';
import { personKey, personName, type Names } from './names.ts';
import { usePermissions } from './permissions.tsx';
import { isRecordId, recordPath, shortId } from './recordIds.ts';
import classes from './RecordLink.module.css';

type Props = {
  id: string | null | undefined;
  names?: Names | undefined;
  /** With the user name or the id in brackets, where others decide on what this person has done. */
  full?: boolean;
};

/** Actors behind a gateway have no account here, and the system has none. */
const hasPage = (id: string): boolean => id.startsWith('usr_') && isRecordId(id);

/**
 * Who did something: the name of the account if it is known, with what is unique about it as its tooltip. It leads
 * to the account, for those who may read accounts.
 */
export function Actor({ id, names, full = false }: Props) {
  const { canAnywhere } = usePermissions();
  if (id === null || id === undefined || id === '') return <span>–</span>;
  const [name, key] = [personName(names, id), personKey(names, id)];
  const title = [key === id ? undefined : key, name === id ? undefined : id].filter(Boolean);
  return (
    <bdi title={title.length > 0 ? exactText(title.join(', ')) : undefined}>
      {hasPage(id) && canAnywhere('user:read') ? (
        <AppLink to={recordPath(id)} className={classes.person}>
          <Exact text={name} />
        </AppLink>
      ) : (
        <Exact text={name} />
      )}
      {full && key !== undefined && (
        <>
          {' '}
          (<Exact text={key === id ? shortId(id) : key} />)
        </>
      )}
    </bdi>
  );
}
