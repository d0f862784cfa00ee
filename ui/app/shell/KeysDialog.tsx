import { Dialog } from '../../parts/Dialog.tsx';
import { Kbd } from '../../parts/Kbd.tsx';
import { useAllShortcuts } from '../shortcuts.ts';
import classes from './KeysDialog.module.css';

/** The keys of the frame and of the page that is shown. */
export default function KeysDialog({ onClose }: { onClose: () => void }) {
  const shortcuts = useAllShortcuts();
  return (
    <Dialog opened onClose={onClose} title="Keys">
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
