import { describe, expect, test } from '@jest/globals';
import { createRackModel, type Mount } from '../../../ui/areas/inventory/racks/rackModel.ts';
import { startValues } from '../../../ui/areas/inventory/startValues.ts';

const mount = (name: string, position: number, uHeight: number, faces: string): Mount => ({
  ...{ position, uHeight, front: faces.includes('f'), rear: faces.includes('r') },
  ...{ deviceId: `dev_${name}`, name, status: 'active', deviceTypeId: 'dty', model: 'M' },
  face: faces.startsWith('f') ? 'front' : 'rear',
});

const keys = (slots: readonly { key: string; mount: Mount | null }[]) =>
  slots.map((slot) => `${slot.key} ${slot.mount?.name ?? ''}`.trim());

describe('the parts of a rack', () => {
  const server = mount('server', 2, 2, 'fr');
  const model = createRackModel(5, [server, mount('back', 5, 1, 'r')]);

  test('are the units of a device, and each free unit, from the top down', () => {
    expect(keys(model.slots.front)).toEqual(['front 5', 'front 4', 'front 3 server', 'front 1']);
    expect(keys(model.slots.rear)).toEqual(['rear 5 back', 'rear 4', 'rear 3 server', 'rear 1']);
    expect(model.freeOf('front')).toBe(3);
    expect(model.slots.front[2]).toMatchObject({ low: 2, high: 3, isBehind: false });
    expect(model.slots.rear[2]).toMatchObject({ isBehind: true });
    expect(model.ofDevice('dev_server')?.key).toBe('front 3');
    expect(model.segments.map(({ low, high }) => [low, high])).toEqual([
      ...[
        [5, 5],
        [4, 4],
        [2, 3],
        [1, 1],
      ],
    ]);
  });

  test('lead to their neighbours, and to the same unit of the other face', () => {
    const from = (key: string, pressed: string) => model.next(model.find(key), pressed)?.key;
    expect(from('front 3', 'ArrowDown')).toBe('front 1');
    expect(from('front 1', 'ArrowDown')).toBeUndefined();
    expect(from('rear 3', 'ArrowLeft')).toBe('front 3');
    expect(from('front 4', 'ArrowRight')).toBe('rear 4');
    expect(from('front 4', 'Home')).toBe('front 5');
  });

  test('are never beyond the rack, whatever its devices say', () => {
    const odd = createRackModel(3, [mount('tall', 3, 9, 'f'), mount('under', 0, 2, 'f')]);
    expect(keys(odd.slots.front)).toEqual(['front 3 tall', 'front 2', 'front 1 under']);
  });
});

test('the form of a new record starts with values of the types of its fields', () => {
  const field = (name: string, type: string) => ({ name, type });
  const resource = {
    fields: [field('position', 'integer'), field('name', 'text'), field('on', 'boolean')],
  };
  expect(startValues(resource, { position: '12', name: '12', on: 'true', other: 'x' })).toEqual({
    ...{ position: 12, name: '12', on: true, other: 'x' },
  });
  expect(startValues(resource, { position: 'twelve' })).toEqual({ position: 'twelve' });
});
