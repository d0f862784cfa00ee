import type { Slot } from './rackModel.ts';
import { mountName, unitsText } from './rackModel.ts';
import { labelOfField } from '../../../parts/format.ts';
import { statusDisplay } from '../../../parts/statuses.ts';

/** How the band of a device shows its status: no status has only a colour of its own. */
export type Pattern = 'solid' | 'dotted' | 'rising' | 'crossed' | 'barred' | 'open';

const PATTERNS: Readonly<Record<string, Pattern>> = {
  active: 'solid',
  planned: 'dotted',
  staged: 'rising',
  failed: 'crossed',
  offline: 'barred',
  retired: 'open',
};

/** The statuses in the order of the legend. */
export const STATUSES = Object.keys(PATTERNS);

export const patternOf = (status: string | null): Pattern => PATTERNS[status ?? ''] ?? 'open';

export const toneOf = (status: string | null): string =>
  status === null ? 'neutral' : statusDisplay(status).tone;

/** A part of a face in words, as screen readers say it. */
export function slotText(slot: Slot): string {
  const where = `${unitsText(slot)} ${slot.face}`;
  if (!slot.mount) return `${where}: free`;
  const { mount, isBehind } = slot;
  // What is written in the drawing is in the name, too.
  const name = mount.model === null ? mountName(mount) : `${mountName(mount)} ${mount.model}`;
  return [
    `${where}: ${name}`,
    mount.status === null ? '' : labelOfField(mount.status).toLowerCase(),
    isBehind ? `mounted on the ${String(mount.face)}` : '',
  ]
    .filter((text) => text !== '')
    .join(', ');
}
