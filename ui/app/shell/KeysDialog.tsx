import { Dialog } from '../../parts/Dialog.tsx';
import { Kbd } from '../../parts/Kbd.tsx';
import { useAllShortcuts } from '../shortcuts.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { GuideLink } from './GuideLink.tsx';
import classes from './KeysDialog.module.css';

/** The keys of the frame and of the page that is shown. */
export default function KeysDialog({ onClose }: { onClose: () => void }) {
  const shortcuts = useAllShortcuts();
  return (
    <Dialog opened onClose={onClose} title="Keys" closeOnClickOutside>
      <p className={classes.guide}>
        <GuideLink onClick={onClose}>Guide of this page</GuideLink> ·{' '}
        <PageLink to="/help/$guide" params={{ guide: 'glossary' }} onClick={onClose}>
          Glossary
        </PageLink>{' '}
        ·{' '}
        <PageLink to="/help" onClick={onClose}>
          All guides
        </PageLink>
      </p>
      <dl className={classes.keys}>
        {shortcuts.map(({ keys, label }) => (
          <div key={keys} className={classes.row}>
            <dt>{label}</dt>
            <dd>
              <Kbd keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
