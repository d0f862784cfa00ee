import { describe, expect, test } from '@jest/globals';
import { parseSearch } from '../../../domain/search/query.ts';

describe('a search text is', () => {
  test.each([
    ['10.1.2.3', { kind: 'address', host: '10.1.2.3' }],
    ['10.1.2.3/32', { kind: 'address', host: '10.1.2.3' }],
    ['10.1.2.3/24', { kind: 'address', host: '10.1.2.3' }],
    ['10.1.2.0/24', { kind: 'network', cidr: '10.1.2.0/24' }],
    ['0.0.0.0/0', { kind: 'network', cidr: '0.0.0.0/0' }],
    ['10.1', { kind: 'beginning', cidr: '10.1.0.0/16' }],
    ['10.', { kind: 'beginning', cidr: '10.0.0.0/8' }],
    ['10.1.2.', { kind: 'beginning', cidr: '10.1.2.0/24' }],
    ['2001:DB8::1', { kind: 'address', host: '2001:db8::1' }],
    ['2001:db8::/32', { kind: 'network', cidr: '2001:db8::/32' }],
    ['2001:db8:', { kind: 'beginning', cidr: '2001:db8::/32' }],
    ['1:2:3:4:5:6:7:', { kind: 'beginning', cidr: '1:2:3:4:5:6:7:0/112' }],
  ])('%s, which means addresses', (text, network) => {
    expect(parseSearch(text)).toMatchObject({ network, id: undefined });
  });

  test.each([
    '10',
    '10.1.2.3.4',
    '300.1.',
    '10..1',
    '.10',
    '10.1.2.256',
    '10.0.0.0/33',
    'core',
    '00:1b:2c:',
    '00:1b:2c:3d:4e:5f',
    'dead:beef',
  ])('%s, which does not', (text) => {
    expect(parseSearch(text).network).toBeUndefined();
  });

  test('words, without outer and double spaces', () => {
    expect(parseSearch('  Core\t Switch ')).toMatchObject({
      text: 'Core Switch',
      words: ['Core', 'Switch'],
    });
  });

  test('an id, in any case', () => {
    const id = 'dev_01jd0cmxk5e5v8kyzwq0q8s3rt';
    expect([parseSearch(id).id, parseSearch(id.toUpperCase()).id]).toEqual([id, id]);
    expect(parseSearch(`${id}x`).id).toBeUndefined();
  });
});
