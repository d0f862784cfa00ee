import { useEffect, useId, useRef, type KeyboardEvent } from 'react';
import { labelOfField } from '../../../parts/format.ts';
import { mountName, type Face, type RackModel, type Slot } from './rackModel.ts';
import { RackPatterns } from './RackPatterns.tsx';
import { patternOf, slotText, toneOf } from './rackStyle.ts';
import classes from './Racks.module.css';

const UNIT = 18;
const NUMBERS = 26;
const WIDTH = 240;
const BAND = 10;

type Props = {
  model: RackModel;
  face: Face;
  /** Names the rack for screen readers. */
  rack: string;
  chosen: Slot | undefined;
  onChoose: (slot: Slot) => void;
  /** Opens what is chosen: by Enter or a double click. */
  onOpen: (slot: Slot) => void;
};

/** One face of a rack, the highest unit at the top. */
export function RackFace(props: Props) {
  const { model, face, rack, chosen, onChoose, onOpen } = props;
  const id = useId();
  const svg = useRef<SVGSVGElement>(null);
  const height = model.height * UNIT;
  const slots = model.slots[face];
  // One of each face is in the order of Tab.
  const tabbed = chosen?.face === face ? chosen : slots[0];
  useEffect(() => {
    // The focus follows from one face to the other.
    const isInRack = document.activeElement?.closest('[data-rack]');
    if (isInRack && chosen?.face === face)
      svg.current?.querySelector<SVGElement>('[aria-selected=true]')?.focus();
  }, [chosen, face]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' && tabbed) onOpen(tabbed);
    else if (event.key === ' ' && tabbed) onChoose(tabbed);
    else {
      const next = model.next(tabbed, event.key);
      if (!next) return;
      onChoose(next);
    }
    event.preventDefault();
  };
  return (
    <figure className={classes.face}>
      <figcaption className={classes.faceName}>
        {labelOfField(face)}
        <span className={classes.muted}>{model.freeOf(face)} free</span>
      </figcaption>
      <svg
        ref={svg}
        className={classes.drawing}
        viewBox={`0 0 ${NUMBERS + WIDTH + 1} ${height + 2}`}
        width={NUMBERS + WIDTH + 1}
        height={height + 2}
        role="listbox"
        aria-label={`${labelOfField(face)} of ${rack}`}
        onKeyDown={onKeyDown}
        data-rack
      >
        <RackPatterns id={id} />
        <Numbers height={model.height} />
        {slots.map((slot) => (
          <SlotShape
            key={slot.key}
            slot={slot}
            patterns={id}
            top={(model.height - slot.high) * UNIT + 1}
            isChosen={slot.key === chosen?.key}
            isTabbed={slot.key === tabbed?.key}
            onChoose={onChoose}
            onOpen={onOpen}
          />
        ))}
      </svg>
    </figure>
  );
}

function Numbers({ height }: { height: number }) {
  return (
    <g aria-hidden="true" className={classes.numbers}>
      {Array.from({ length: height }, (_, index) => (
        <text key={index} x={NUMBERS - 5} y={index * UNIT + UNIT - 4} textAnchor="end">
          {height - index}
        </text>
      ))}
    </g>
  );
}

type ShapeProps = {
  slot: Slot;
  patterns: string;
  top: number;
  isChosen: boolean;
  isTabbed: boolean;
} & Pick<Props, 'onChoose' | 'onOpen'>;

function SlotShape({ slot, patterns, top, isChosen, isTabbed, onChoose, onOpen }: ShapeProps) {
  const { mount, low, high } = slot;
  const height = (high - low + 1) * UNIT;
  return (
    <g
      className={classes.slot}
      role="option"
      aria-label={slotText(slot)}
      aria-selected={isChosen}
      tabIndex={isTabbed ? 0 : -1}
      data-free={mount === null || undefined}
      data-tone={mount ? toneOf(mount.status) : undefined}
      transform={`translate(${NUMBERS} ${top})`}
      onClick={() => onChoose(slot)}
      onFocus={() => onChoose(slot)}
      onDoubleClick={() => onOpen(slot)}
    >
      <title>{slotText(slot)}</title>
      <rect className={classes.box} x="0.5" y="0.5" width={WIDTH - 1} height={height - 1} rx="1" />
      {slot.mount && <Device slot={slot} height={height} patterns={patterns} />}
      <rect className={classes.frame} x="1" y="1" width={WIDTH - 2} height={height - 2} rx="1" />
    </g>
  );
}

type DeviceProps = { slot: Extract<Slot, { isBehind: boolean }>; height: number; patterns: string };

/** A device in its units: its status as a band, its name, and its model if there is space. */
function Device({ slot: { mount, isBehind }, height, patterns }: DeviceProps) {
  const pattern = patternOf(mount.status);
  const hasModel = height > UNIT && mount.model !== null;
  const middle = height / 2 + 4;
  return (
    // An inner drawing cuts what is longer than the device is wide.
    <svg x="0" y="0" width={WIDTH - 2} height={height} aria-hidden="true">
      {(isBehind || mount.deviceId === null) && (
        <rect x="1" y="1" width={WIDTH - 2} height={height - 2} fill={`url(#${patterns}-behind)`} />
      )}
      <rect className={classes.band} x="1" y="1" width={BAND} height={height - 2} />
      {pattern === 'solid' ? (
        <rect className={classes.bandInk} x="1" y="1" width={BAND} height={height - 2} />
      ) : (
        pattern !== 'open' && (
          <rect
            x="1"
            y="1"
            width={BAND}
            height={height - 2}
            fill={`url(#${patterns}-${pattern})`}
          />
        )
      )}
      {/* One text: what is written is in the name of the part, too. */}
      <text
        className={classes.name}
        data-behind={isBehind || undefined}
        x={BAND + 6}
        y={hasModel ? middle - 7 : middle}
      >
        {mountName(mount)}
        {hasModel && (
          <>
            {' '}
            <tspan className={classes.model} x={BAND + 6} dy={15}>
              {mount.model}
            </tspan>
          </>
        )}
      </text>
    </svg>
  );
}
