import { useId } from 'react';
import { labelOfField } from '../../../parts/format.ts';
import type { Face, RackModel } from './rackModel.ts';
import { RackPatterns } from './RackPatterns.tsx';
import { patternOf, toneOf } from './rackStyle.ts';
import classes from './Racks.module.css';

const UNIT = 5;
const WIDTH = 90;

type Props = {
  model: RackModel;
  face: Face;
  /** What the picture shows, for who cannot see it. */
  label: string;
  /** The device that is marked. */
  deviceId?: string | undefined;
};

/** One face of a rack as a small picture. */
export function RackThumb({ model, face, label, deviceId }: Props) {
  const id = useId();
  const height = model.height * UNIT;
  return (
    <svg
      className={classes.thumb}
      width={WIDTH}
      height={height + 2}
      role="img"
      aria-label={`${labelOfField(face)}: ${label}`}
    >
      <RackPatterns id={id} />
      <rect className={classes.thumbFrame} x="0.5" y="0.5" width={WIDTH - 1} height={height + 1} />
      {model.slots[face].map((slot) => {
        if (!slot.mount) return null;
        const box = {
          x: 2,
          y: (model.height - slot.high) * UNIT + 1.5,
          width: WIDTH - 4,
          height: (slot.high - slot.low + 1) * UNIT - 1,
        };
        const { status } = slot.mount;
        const pattern = patternOf(status);
        const isMarked = deviceId !== undefined && slot.mount.deviceId === deviceId;
        return (
          <g key={slot.key} data-tone={toneOf(status)} data-marked={isMarked || undefined}>
            <rect className={classes.box} {...box} />
            {pattern !== 'solid' && pattern !== 'open' && (
              <rect {...box} fill={`url(#${id}-${pattern})`} />
            )}
            {slot.isBehind && <rect {...box} fill={`url(#${id}-behind)`} />}
          </g>
        );
      })}
    </svg>
  );
}
