import { Empty } from './Empty.tsx';
import { usePermissions } from './permissions.tsx';

type Props = {
  /** What the page would show or do: `Jobs`. */
  title?: string | undefined;
  /** One of them is needed. */
  permissions?: readonly string[];
  /** The page has nothing else. */
  isPage?: boolean;
};

/** Says why a page has nothing for the reader, and what can be done about it. */
export function NoAccess({ title, permissions = [], isPage = false }: Props) {
  const { hasNoRole, user } = usePermissions();
  const needed = permissions.join(' or ');
  if (hasNoRole)
    return (
      <Empty
        isPage={isPage}
        kind="hidden"
        title="You have no role yet"
        detail={
          <>
            A role decides what you may see and do. Ask an administrator of Holdfast to assign one
            to you: your user name is <code>{user.username}</code>. This page shows more as soon as
            that is done.
          </>
        }
      />
    );
  return (
    <Empty
      isPage={isPage}
      kind="hidden"
      title={`${title ?? 'This page'}: not for your roles`}
      detail={
        <>
          This needs the permission <code>{needed}</code>. Ask an administrator of Holdfast for a
          role that has it: your user name is <code>{user.username}</code>.
        </>
      }
    />
  );
}
