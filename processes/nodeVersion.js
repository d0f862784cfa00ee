import process from 'node:process';

/** The first version that runs the sources as they are. */
const NEEDED = 24;

// Ends a process that another Node runs, before it meets sources that this Node cannot read. In JavaScript, which each can.
// Programs in TypeScript are started with `--import` of this file.
if (Number(process.versions.node.split('.')[0]) < NEEDED) {
  process.stderr.write(
    `Holdfast needs Node ${NEEDED} or newer; this is ${process.version}. npm ci installs one, which npm run uses: node_modules/.bin/node\n`,
  );
  process.exit(1);
}
