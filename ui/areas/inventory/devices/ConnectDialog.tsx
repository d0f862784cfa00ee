import { NativeSelect, Select, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { KINDS_WITHOUT_CABLE } from '../../../../domain/inventory/cabling.ts';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { formatCount, labelOfField } from '../../../parts/format.ts';
import { RecordPicker } from '../../../parts/records/RecordPicker.tsx';
import { AskButton } from '../AskButton.tsx';
import type { InventoryRecord, Resource } from '../inventoryQueries.ts';
import { PlanPanel } from '../PlanPanel.tsx';
import { whyNotApply } from '../planState.ts';
import { whereOf } from '../whereOf.ts';
import { usePlan, type Mutation } from '../usePlan.ts';
import { deviceInterfacesQuery, equipmentKey } from './deviceQueries.ts';
import classes from './Devices.module.css';

type Props = {
  device: InventoryRecord;
  all: readonly Resource[];
  from: Schemas['Interface'];
  onClose: () => void;
};

type Draft = {
  deviceId?: string | undefined;
  interfaceId?: string | undefined;
  kind: string;
  label: string;
};

/** The cable that a draft describes; undefined until it has both ends. */
function cableOf({ device, from }: Props, draft: Draft): Record<string, unknown> | undefined {
  const { interfaceId, kind, label } = draft;
  if (interfaceId === undefined) return undefined;
  return {
    ...{ aInterfaceId: from.id, bInterfaceId: interfaceId, kind },
    ...(label.trim() !== '' && { label: label.trim() }),
    // It belongs to whom the device belongs to, whatever tenant the user works in.
    ...(typeof device.tenantId === 'string' && { tenantId: device.tenantId }),
  };
}

/** Creates the cable, and shows the device with it. */
function useConnect({ device, onClose }: Props) {
  const client = useQueryClient();
  return useCreation({
    send: async (cable: Record<string, unknown>, header) => {
      // The service checks it.
      const body = cable as { aInterfaceId: string; bInterfaceId: string };
      return await answer(api.POST('/api/inventory/cables', { params: { header }, body }));
    },
    onMade: () => {
      void client.invalidateQueries({ queryKey: equipmentKey(device.id) });
      void client.invalidateQueries({ queryKey: ['inventory', 'cables'] });
      onClose();
    },
  });
}

/** Connects an interface with one of another device: what that changes is shown before. */
export function ConnectDialog(props: Props) {
  const { device, all, from, onClose } = props;
  const [draft, setDraft] = useState<Draft>({ kind: 'other', label: '' });
  const cable = cableOf(props, draft);
  const mutation: Mutation = { resource: 'cables', operation: 'create', record: cable ?? {} };
  const { create, isBusy, error } = useConnect(props);
  const plan = usePlan(cable && mutation, { refused: error });
  const title = `Connect ${from.name} of ${String(device.name)}`;
  const reason = cable ? whyNotApply(plan, false) : 'Choose the interface at the other end.';
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={title}
      confirm="Connect"
      reason={reason}
      onConfirm={() => cable && create(cable)}
      busy={isBusy}
      problem={error}
      cancel="Cancel"
    >
      <CableFields {...{ all, draft }} onChange={setDraft} />
      <PlanPanel
        plan={plan}
        all={all}
        nothing="Choose the interface at the other end: what changes is shown here."
      />
      <AskButton
        mutation={mutation}
        title={title}
        where={whereOf('devices', device)}
        reason={reason}
        onAsked={onClose}
      />
    </ConfirmDialog>
  );
}

type FieldsProps = {
  all: readonly Resource[];
  draft: Draft;
  onChange: (draft: Draft) => void;
};

function CableFields({ all, draft, onChange }: FieldsProps) {
  const cables = all.find(({ name }) => name === 'cables');
  const kinds = cables?.fields.find(({ name }) => name === 'kind')?.choices ?? [];
  return (
    <div className={classes.fields}>
      <RecordPicker
        resource="devices"
        label="Device"
        value={draft.deviceId}
        onChange={(deviceId) => onChange({ ...draft, deviceId, interfaceId: undefined })}
      />
      <FarInterface draft={draft} onChange={onChange} />
      <NativeSelect
        label="Kind of cable"
        value={draft.kind}
        data={kinds.map((value) => ({ value, label: labelOfField(value) }))}
        onChange={(event) => onChange({ ...draft, kind: event.currentTarget.value })}
      />
      <TextInput
        label="Label"
        value={draft.label}
        onChange={(event) => onChange({ ...draft, label: event.currentTarget.value })}
        autoComplete="off"
      />
    </div>
  );
}

/** The interfaces of the other device that can have a cable; those that have one cannot be chosen. */
function FarInterface({ draft, onChange }: Omit<FieldsProps, 'all'>) {
  const { deviceId, interfaceId } = draft;
  const { data, error } = useQuery({
    ...deviceInterfacesQuery(deviceId ?? ''),
    enabled: deviceId !== undefined,
  });
  const most =
    data?.hasMore === true
      ? `The device has more interfaces than the first ${formatCount(data.interfaces.length)}, which are offered here.`
      : undefined;
  const ports = (data?.interfaces ?? []).filter(
    ({ record }) => !KINDS_WITHOUT_CABLE.includes(record.kind),
  );
  return (
    <Select
      label="Interface"
      description={most}
      searchable
      disabled={deviceId === undefined}
      placeholder={deviceId === undefined ? 'Choose the device first' : 'Search interfaces'}
      data={ports.map(({ record, connection }) => ({
        value: record.id,
        label: connection ? `${record.name} (has a cable)` : record.name,
        disabled: connection !== undefined,
      }))}
      nothingFoundMessage={data ? 'No interface that can have a cable' : 'Searching …'}
      value={interfaceId ?? null}
      onChange={(id) => onChange({ ...draft, interfaceId: id ?? undefined })}
      error={error ? 'The interfaces could not be read.' : undefined}
    />
  );
}
