import { expect, test } from '@jest/globals';
import { Readable } from 'node:stream';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { readCsv } from '../../../services/inventory/importFile.ts';

async function read(text: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const { mutation } of readCsv(Readable.from([Buffer.from(text)]), RESOURCES.sites))
    rows.push(mutation.record);
  return rows;
}

test.each([
  [
    'name,status\nams1\n',
    'line 2: has 1 cell, and the first line has 2. A cell with commas needs quotes',
  ],
  [
    'name\na,b,c\n',
    'line 2: has 3 cells, and the first line has 1. A cell with commas needs quotes',
  ],
  ['name\n"ams1\n', 'line 2: has a cell whose quotes do not end'],
  ['name\nams"1\n', 'line 2: has a quote inside a cell without quotes'],
  [
    'name\n"ams"1\n',
    'line 2: has text after the quotes of a cell. A quote inside of quotes is written twice',
  ],
  [`name\n${'x'.repeat(270_000)}\n`, 'line 2: is longer than 262144 characters'],
])('a file that begins with %j says where it is no CSV, and why', async (text, message) => {
  await expect(read(text)).rejects.toThrow(message);
});

test('a byte order mark, other line ends, and line ends in quotes are none of them', async () => {
  expect(await read('\uFEFFname,address\r\nams1,"1\r\n2"\r\n')).toEqual([
    { name: 'ams1', address: '1\r\n2' },
  ]);
});

test.each([
  'name,status\nams1,active\r\nams2,active\r\n',
  'name,status\r\nams1,active\nams2,active',
  'name,status\rams1,active\rams2,active\r',
  'name,status\n\r\nams1,active\r\n\nams2,active\n',
])('lines may end with LF, CRLF and CR: %j', async (text) => {
  const rows = [
    { name: 'ams1', status: 'active' },
    { name: 'ams2', status: 'active' },
  ];
  expect(await read(text)).toEqual(rows);
  // A piece of the file may end between CR and LF.
  const bytes = Array.from(Buffer.from(text), (byte) => Buffer.from([byte]));
  const found: unknown[] = [];
  for await (const { mutation } of readCsv(Readable.from(bytes), RESOURCES.sites))
    found.push(mutation.record);
  expect(found).toEqual(rows);
});
