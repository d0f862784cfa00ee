/** Kinds of interfaces that have no connector. */
export const KINDS_WITHOUT_CABLE: readonly unknown[] = [
  'wireless',
  'lag',
  'bridge',
  'loopback',
  'virtual',
];
