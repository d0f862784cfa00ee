import type { Composition } from '../composition/index.ts';
import { EXIT_USAGE, print, type Command } from './command.ts';

type Verification = Awaited<ReturnType<Composition['auditSealer']['verify']>>;

export const verifyAudit: Command = {
  usage: 'verify-audit [tenant]: verifies the hash chains of the audit log',
  async run({ auditSealer }, [tenant, ...more]) {
    if (more.length > 0 || tenant?.startsWith('-')) return EXIT_USAGE;
    const tenants = tenant === undefined ? await auditSealer.tenants() : [tenant];
    if (tenants.length === 0) print('There are no audit entries.');
    let allIntact = true;
    for (const each of tenants) {
      const verification = await auditSealer.verify(each);
      print(`${each}: ${describe(verification)}`);
      allIntact &&= isIntact(verification);
    }
    return allIntact ? 0 : 1;
  },
};

const hasEntries = ({ checked, unsealed }: Verification) => checked + unsealed > 0;

/** A chain without entries is not intact: its tenant may be misspelt, or all entries deleted. */
const isIntact = (verification: Verification) => !verification.broken && hasEntries(verification);

function describe(verification: Verification): string {
  const { checked, unsealed, broken } = verification;
  const unsealedNote = unsealed > 0 ? `, ${unsealed} not yet sealed` : '';
  if (broken) {
    const entry = broken.id === null ? ' (missing)' : `, entry ${broken.id}`;
    return `BROKEN at position ${broken.position}${entry}; the ${checked} entries before it are intact${unsealedNote}`;
  }
  if (!hasEntries(verification)) return 'there are no entries';
  return `${checked} entries, intact${unsealedNote}`;
}
