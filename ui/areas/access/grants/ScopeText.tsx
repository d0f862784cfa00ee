import { whereText } from '../../../app/account/tokenText.ts';
import { Exact } from '../../../parts/Exact.tsx';
import type { Names } from '../../../parts/names.ts';

type Props = {
  grant: { tenantId: string; siteId: string | null; deviceId: string | null };
  names: Names | undefined;
};

/** Where a grant holds, in words: `everywhere`, `tenant red`, `site ams1 of red`. */
export function ScopeText({ grant, names }: Props) {
  return <Exact text={whereText(grant, names)} />;
}
