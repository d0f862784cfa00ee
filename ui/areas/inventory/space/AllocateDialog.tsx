import { Button, NumberInput, SegmentedControl } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { addressBits, type Block } from '../../../../domain/inventory/cidr.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { Dialog, useBusyDialog } from '../../../parts/Dialog.tsx';
import { RefusedNote } from '../../../parts/RefusedNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import classes from './Space.module.css';

type Props = {
  /** The prefix to allocate from. */
  id: string;
  cidr: string;
  block: Block;
  /** Why no addresses can be allocated from it. */
  whyNoAddress: string | undefined;
  onClose: () => void;
};

type Kind = 'address' | 'prefix';
type Wanted = { kind: Kind; prefixLength?: number };
type Made = { id: string; network: string };

/** Creates the lowest free address or prefix. */
function useAllocation(id: string) {
  const client = useQueryClient();
  const [made, setMade] = useState<Made>();
  const creation = useCreation<Wanted, Made>({
    send: async (body, header) => {
      const params = { path: { id }, header };
      const record = await answer(
        api.POST('/api/inventory/prefixes/{id}/allocate', { params, body }),
      );
      return { id: record.id, network: 'cidr' in record ? record.cidr : record.address };
    },
    onMade: (next) => {
      setMade(next);
      void client.invalidateQueries({ queryKey: ['inventory'] });
    },
  });
  return { ...creation, made };
}

/** The length that is offered first: a quarter of the prefix, or what is usual for a network of hosts. */
function usualLength({ family, length }: Block): number {
  const usual = family === 4 ? 24 : 64;
  return length < usual ? usual : Math.min(length + 2, addressBits(family));
}

/** Allocates the next free address, or the next free prefix of a length, and shows which one it is. */
export function AllocateDialog({ id, cidr, block, whyNoAddress, onClose }: Props) {
  const { made, ...allocation } = useAllocation(id);
  return (
    <Dialog opened onClose={onClose} title={`Allocate from ${cidr}`}>
      {made ? (
        <Allocated made={made} onClose={onClose} />
      ) : (
        <AllocateForm {...{ block, whyNoAddress, onClose, ...allocation }} />
      )}
    </Dialog>
  );
}

type FormProps = Pick<Props, 'block' | 'whyNoAddress' | 'onClose'> &
  Omit<ReturnType<typeof useAllocation>, 'made'>;

function AllocateForm({ block, whyNoAddress, onClose, create, isBusy, error }: FormProps) {
  const [kind, setKind] = useState<Kind>(whyNoAddress === undefined ? 'address' : 'prefix');
  const [length, setLength] = useState<number | string>(usualLength(block));
  useBusyDialog(isBusy);
  const prefixLength = Number(length);
  const isValid = length !== '' && prefixLength > block.length;
  return (
    <form
      className={classes.chosen}
      onSubmit={(event) => {
        event.preventDefault();
        if (kind === 'address') create({ kind });
        else if (isValid) create({ kind, prefixLength });
      }}
    >
      <SegmentedControl
        aria-label="What is allocated"
        value={kind}
        onChange={setKind}
        data={[
          { value: 'address', label: 'An address', disabled: whyNoAddress !== undefined },
          { value: 'prefix', label: 'A prefix' },
        ]}
      />
      {whyNoAddress !== undefined && <p className={classes.muted}>{whyNoAddress}</p>}
      {kind === 'prefix' && (
        <NumberInput
          label="Length"
          description={`From /${block.length + 1} to /${addressBits(block.family)}`}
          prefix="/"
          min={block.length + 1}
          max={addressBits(block.family)}
          allowDecimal={false}
          value={length}
          onChange={setLength}
        />
      )}
      <RefusedNote problem={error} />
      <div className={classes.buttons}>
        <Button type="submit" loading={isBusy}>
          Allocate
        </Button>
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

function Allocated({ made, onClose }: { made: Made; onClose: () => void }) {
  return (
    <div className={classes.chosen}>
      <p className={classes.made} role="status">
        <span>
          <RecordLink id={made.id} label={made.network} /> is yours.
        </span>
        <CopyButton value={made.network} label={`Copy ${made.network}`} withText />
      </p>
      <div className={classes.buttons}>
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
      </div>
    </div>
  );
}
