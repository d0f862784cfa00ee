import type { Composition } from '../composition/index.ts';
import type { Command } from './command.ts';
import { print, readArguments } from './program.ts';
import { counted } from '../../domain/shared/counted.ts';

type Verification = Awaited<ReturnType<Composition['auditSealer']['verify']>>;

export const verifyAudit: Command = {
  usage:
    'verify-audit [tenant] [--archives]: verifies the hash chains of the audit log, and the archives of their beginnings',
  read(args) {
    const { values, words } = readArguments(args, {
      options: { archives: { type: 'boolean' } },
      words: 1,
    });
    const [tenant] = words;
    return async ({ auditSealer, backups }) => {
      const tenants = tenant === undefined ? await auditSealer.tenants() : [tenant];
      if (tenants.length === 0) print('There are no audit entries.');
      let allIntact = true;
      for (const each of tenants) {
        const verification = await auditSealer.verify(each);
        print(`${each}: ${describe(verification)}`);
        allIntact &&= isIntact(verification);
        if (!values.archives) continue;
        for await (const { archive, problem } of backups.auditArchives.verify(each)) {
          const { archive: name, firstPosition, position } = archive;
          print(
            `${each}: ${name}, positions ${firstPosition} to ${position}: ${problem ?? 'intact'}`,
          );
          allIntact &&= problem === null;
        }
      }
      return allIntact ? 0 : 1;
    };
  },
};

const hasEntries = ({ checked, unsealed }: Verification) => checked + unsealed > 0;

/** A chain without entries is not intact: its tenant may be misspelt, or all entries deleted. */
const isIntact = (verification: Verification) => !verification.broken && hasEntries(verification);

function describe(verification: Verification): string {
  const { from, checked, unsealed, broken } = verification;
  const unsealedNote = unsealed > 0 ? `, ${unsealed} not yet sealed` : '';
  const archived = from > 0 ? `; archived before: ${from}` : '';
  if (broken?.position === from)
    return `BROKEN: the chain does not say that its beginning is archived (${counted(from, 'entry')})${unsealedNote}`;
  if (broken) {
    const entry = broken.id === null ? ' (missing)' : `, entry ${broken.id}`;
    return `BROKEN at position ${broken.position}${entry}; intact before it: ${counted(checked, 'entry')}${unsealedNote}`;
  }
  if (!hasEntries(verification)) return 'there are no entries';
  return `${counted(checked, 'entry')}, intact${unsealedNote}${archived}`;
}
