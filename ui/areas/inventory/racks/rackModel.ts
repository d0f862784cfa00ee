/** The units of a rack that a device takes, as the API has them. */
export type Mount = {
  position: number;
  uHeight: number;
  front: boolean;
  rear: boolean;
  deviceId: string | null;
  name: string | null;
  status: string | null;
  face: string | null;
  deviceTypeId: string | null;
  model: string | null;
};
export type Face = 'front' | 'rear';

export const FACES: readonly Face[] = ['front', 'rear'];

/**
 * A part of a face that can be chosen: the units of a device, or one free unit. `isBehind`: the device is mounted
 * on the other face and takes these units too.
 */
export type Slot = {
  key: string;
  face: Face;
  low: number;
  high: number;
} & ({ mount: Mount; isBehind: boolean } | { mount: null });

/** Units of both faces that the same devices take, or none. */
export type Segment = { low: number; high: number; front: Mount | null; rear: Mount | null };

export type RackModel = ReturnType<typeof createRackModel>;

const takes = (mount: Mount, face: Face): boolean => mount[face];

const highOf = ({ position, uHeight }: Mount): number => position + uHeight - 1;

/** The device in each unit of a face, the lowest first. */
function unitsOf(height: number, mounts: readonly Mount[], face: Face): (Mount | null)[] {
  const units = Array<Mount | null>(height).fill(null);
  for (const mount of mounts)
    if (takes(mount, face))
      units.fill(mount, Math.max(0, mount.position - 1), Math.max(0, highOf(mount)));
  return units.slice(0, height);
}

/** The parts of a face from the top down. */
function slotsOf(face: Face, units: readonly (Mount | null)[]): Slot[] {
  const slots: Slot[] = [];
  for (let unit = units.length; unit >= 1; unit -= 1) {
    const mount = units[unit - 1] ?? null;
    const last = slots.at(-1);
    if (mount && last?.mount === mount) last.low = unit;
    else {
      const at = { key: `${face} ${unit}`, face, low: unit, high: unit };
      // A device that the user may not read has no face.
      const isBehind = mount !== null && mount.face !== null && mount.face !== face;
      slots.push(mount ? { ...at, mount, isBehind } : { ...at, mount });
    }
  }
  return slots;
}

/** Runs of units from the top down in which neither face changes. */
function segmentsOf(front: readonly (Mount | null)[], rear: readonly (Mount | null)[]): Segment[] {
  const segments: Segment[] = [];
  for (let unit = front.length; unit >= 1; unit -= 1) {
    const [one, other] = [front[unit - 1] ?? null, rear[unit - 1] ?? null];
    const last = segments.at(-1);
    if (last?.front === one && last.rear === other) last.low = unit;
    else segments.push({ low: unit, high: unit, front: one, rear: other });
  }
  return segments;
}

/** What is where in a rack of `height` units. */
export function createRackModel(height: number, mounts: readonly Mount[]) {
  const units = {
    front: unitsOf(height, mounts, 'front'),
    rear: unitsOf(height, mounts, 'rear'),
  };
  const slots = { front: slotsOf('front', units.front), rear: slotsOf('rear', units.rear) };
  const at = (face: Face, unit: number): Slot | undefined =>
    slots[face].find(({ low, high }) => low <= unit && unit <= high);
  return {
    height,
    slots,
    segments: segmentsOf(units.front, units.rear),
    /** Units of a face that no device takes. */
    freeOf: (face: Face): number => units[face].filter((mount) => mount === null).length,
    find: (key: string | undefined): Slot | undefined =>
      [...slots.front, ...slots.rear].find((slot) => slot.key === key),
    /** The slot with a device, on the face that it is mounted on if it has one. */
    ofDevice(deviceId: string): Slot | undefined {
      const own = [...slots.front, ...slots.rear].filter(
        ({ mount }) => mount?.deviceId === deviceId,
      );
      return own.find((slot) => slot.mount !== null && !slot.isBehind) ?? own[0];
    },
    /** Where a key leads from a slot: up and down its face, or to the same unit of the other one. */
    next(slot: Slot | undefined, key: string): Slot | undefined {
      if (!slot) return slots.front[0];
      const column = slots[slot.face];
      const index = column.indexOf(slot);
      switch (key) {
        case 'ArrowUp':
          return column[index - 1];
        case 'ArrowDown':
          return column[index + 1];
        case 'ArrowLeft':
          return at('front', slot.high);
        case 'ArrowRight':
          return at('rear', slot.high);
        case 'Home':
          return column[0];
        case 'End':
          return column.at(-1);
        default:
          return undefined;
      }
    },
  };
}

/** The units of a part: `U12`, `U12–13`. */
export const unitsText = ({ low, high }: { low: number; high: number }): string =>
  low === high ? `U${low}` : `U${low}–${high}`;

/** The name of a device in a rack. */
export const mountName = ({ name }: Mount): string => name ?? 'You may not read it';
