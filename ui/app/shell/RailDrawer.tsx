import { Drawer } from '@mantine/core';
import { useReturnedFocus } from '../../parts/useReturnedFocus.ts';
import { Rail } from './Rail.tsx';

/** The rail on narrow screens. */
export default function RailDrawer({ onClose }: { onClose: () => void }) {
  useReturnedFocus(true);
  return (
    <Drawer opened onClose={onClose} size="xs" title="Pages">
      <Rail onNavigate={onClose} />
    </Drawer>
  );
}
