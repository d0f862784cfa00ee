import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  writeFile,
} from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readRunningStack } from '../../../dev/runningStack.ts';
import { startStack } from '../../../dev/stack.ts';
import { COMPILE_CACHE } from '../../support/compileCache.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

let root: string;
beforeAll(async () => {
  root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'holdfast-start-')));
  await chmod(root, 0o711);
});
afterAll(() => rm(root, { recursive: true, force: true }));

type Start = {
  child: ChildProcess;
  exited: Promise<number | null>;
  output(): string;
  /** Resolves when the output contains `text`; fails when the process ends first. */
  printed(text: string): Promise<void>;
};

type Installation = Awaited<ReturnType<typeof createInstallation>>;

/** A data folder, and the programs that its starts find on PATH. */
async function createInstallation(name: string) {
  const folder = path.join(root, name);
  const bin = path.join(folder, 'bin');
  const starts: Start[] = [];
  await mkdir(bin, { recursive: true });
  await chmod(folder, 0o711);

  const installation = {
    folder,

    /** The folders of programs, with its own first. */
    searchPath: () => `${bin}${path.delimiter}${process.env.PATH ?? ''}`,

    /** Runs what `npm start` runs. */
    start(env: Record<string, string> = {}): Start {
      const started = launch(folder, { PATH: installation.searchPath(), ...env });
      starts.push(started);
      return started;
    },

    /** Makes `temporal` a shell script instead of the program itself. */
    setTemporal: (script: string) =>
      writeFile(path.join(bin, 'temporal'), `#!/bin/sh\n${script}\n`, { mode: 0o755 }),

    /** Command lines of the running servers. */
    serverProcesses: () => serverProcesses(folder),

    /** The same after a moment: children of a server may end after it. */
    async leftRunning(): Promise<string[]> {
      let found: string[] = [];
      for (let tries = 0; tries < 100; tries++) {
        found = await serverProcesses(folder);
        if (found.length === 0) return [];
        await sleep(50);
      }
      return found;
    },

    async serverPid(server: string): Promise<number> {
      const record = JSON.parse(await readFile(path.join(folder, 'servers.json'), 'utf8')) as {
        servers: { name: string; pid: number }[];
      };
      return record.servers.find(({ name: recorded }) => recorded === server)?.pid ?? 0;
    },

    /** Stops what a failed case left running. */
    async stop(): Promise<void> {
      for (const { child, exited } of starts) {
        child.kill('SIGTERM');
        await exited;
      }
    },
  };
  await installation.setTemporal(`exec ${process.env.TEST_TEMPORAL_BINARY ?? ''} "$@"`);
  return installation;
}

function launch(folder: string, env: Record<string, string>): Start {
  const child = spawn(process.execPath, ['processes/dev.ts'], {
    cwd: ROOT,
    env: {
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      HOLDFAST_DATA_DIR: folder,
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'info',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  let ended = false;
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  void exited.then(() => (ended = true));
  return {
    child,
    exited,
    output: () => output,
    async printed(text) {
      while (!output.includes(text)) {
        if (ended) throw new Error(`The process ended:\n${output}`);
        await sleep(10);
      }
    },
  };
}

async function serverProcesses(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return `${pid} ${line.replaceAll('\0', ' ')}`;
    }),
  );
  return lines.filter((line) => line.includes(`${folder}/`) && !line.includes('processes/dev.ts'));
}

/** Files and folders that others may read or enter. A group may only pass through: PostgreSQL's. */
async function openToOthers(folder: string): Promise<string[]> {
  const args = [folder, '-name', 'bin', '-prune', '-o', '-perm', '/067', '!', '-type', 'l'];
  const { stdout } = await promisify(execFile)('find', [...args, '-print']);
  return stdout.split('\n').filter((line) => line !== '');
}

test('the first start creates everything, a second one is refused, SIGTERM stops everything', async () => {
  const installation = await createInstallation('first');
  try {
    // Left by an earlier version, which let others read it.
    const log = path.join(installation.folder, 'postgres.log');
    await writeFile(log, '');
    await chmod(log, 0o644);
    const first = installation.start();
    await first.printed('Holdfast is ready');
    expect(await openToOthers(installation.folder)).toEqual([]);
    expect(first.output()).toContain('One-time password');
    const [, origin = ''] = /API +(\S+)\/api\n/.exec(first.output()) ?? [];
    const [, url] = /Temporal Web UI +(\S+)/.exec(first.output()) ?? [];
    const settings = await (await fetch(`${origin}/api/console`)).json();
    expect(settings).toMatchObject({ origin, temporalUi: { url, namespace: 'default' } });
    const [, page = ''] = /Console +(\S+)\n/.exec(first.output()) ?? [];
    expect((await fetch(page, { headers: { accept: 'text/html' } })).status).toBe(200);
    const second = installation.start();
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain('Holdfast already runs on');
    expect((await installation.serverProcesses()).length).toBeGreaterThanOrEqual(2);
    first.child.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    expect(await installation.leftRunning()).toEqual([]);
  } finally {
    await installation.stop();
  }
});

describe('on an initialised data folder', () => {
  /** Cases that run at the same time: a start mostly waits for its servers, a stop too. */
  const CONCURRENCY = 3;
  type Case = { run(): Promise<void>; ended: PromiseWithResolvers<undefined> };
  const cases: Case[] = [];

  /** Each case has a copy of the folder that the first start created. */
  function testCase(title: string, work: (installation: Installation) => Promise<void>): void {
    const ended = Promise.withResolvers<undefined>();
    // The test that waits for it may begin after a failure.
    ended.promise.catch(() => undefined);
    const name = `case-${cases.length}`;
    const run = async () => {
      await promisify(execFile)('cp', ['-a', path.join(root, 'first'), path.join(root, name)]);
      const installation = await createInstallation(name);
      try {
        await work(installation);
      } finally {
        await installation.stop();
      }
    };
    cases.push({ run, ended });
    test(title, () => ended.promise);
  }

  const preferredPorts: Server[] = [];
  let finished: Promise<unknown>;
  beforeAll(async () => {
    // Starts at the same time must not choose the same port; with these taken, each chooses its own.
    for (const port of [5_433, 7_233, 8_233]) {
      const server = createServer();
      const taken = await new Promise<boolean>((resolve) => {
        server.once('error', () => resolve(false));
        server.listen(port, '127.0.0.1', () => resolve(true));
      });
      if (taken) preferredPorts.push(server);
    }
    const queue = [...cases];
    const runCases = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { run, ended } = next;
        await run().then(() => ended.resolve(undefined), ended.reject);
      }
    };
    finished = Promise.all(Array.from({ length: CONCURRENCY }, runCases));
  });
  afterAll(async () => {
    await finished;
    for (const server of preferredPorts) server.close();
  });

  testCase(
    'the next start stops servers that a killed one left; when a server ends, all stop',
    async (installation) => {
      const killed = installation.start();
      await killed.printed('Holdfast is ready');
      killed.child.kill('SIGKILL');
      await killed.exited;
      expect((await installation.serverProcesses()).length).toBeGreaterThanOrEqual(2);
      const next = installation.start();
      await next.printed('Holdfast is ready');
      expect(next.output()).toContain('Stopped servers that an earlier start had left running');
      // The usual port of Temporal is that of another program, which a command must not ask.
      const { TEMPORAL_ADDRESS } = await readRunningStack(installation.folder);
      expect(next.output()).toMatch(new RegExp(`Temporal +${TEMPORAL_ADDRESS}\\n`));
      process.kill(await installation.serverPid('PostgreSQL'), 'SIGKILL');
      expect(await next.exited).toBe(1);
      expect(next.output()).toContain('PostgreSQL ended by SIGKILL');
      expect(await installation.leftRunning()).toEqual([]);
    },
  );

  testCase('a signal while components become ready stops everything', async (installation) => {
    const started = installation.start();
    await started.printed('listening');
    started.child.kill('SIGINT');
    expect(await started.exited).toBe(0);
    expect(started.output()).not.toContain('cannot start');
    expect(await installation.leftRunning()).toEqual([]);
  });

  testCase('a signal while the servers start stops them', async (installation) => {
    await installation.setTemporal('while :; do sleep 0.1; done');
    const started = installation.start();
    for (
      let tries = 0;
      (await installation.serverProcesses()).length === 0 && tries < 500;
      tries++
    ) {
      await sleep(20);
    }
    started.child.kill('SIGINT');
    expect(await started.exited).toBe(0);
    expect(await installation.leftRunning()).toEqual([]);
  });

  testCase(
    'a second signal ends the process, and the servers stop by themselves',
    async (installation) => {
      const started = installation.start();
      await started.printed('Holdfast is ready');
      started.child.kill('SIGTERM');
      await started.printed('stopping');
      started.child.kill('SIGTERM');
      expect(await started.exited).toBe(130);
      expect(await installation.leftRunning()).toEqual([]);
    },
  );

  testCase('bad configuration is reported before a server starts', async (installation) => {
    const started = installation.start({ HOLDFAST_ROLE: 'queen' });
    expect(await started.exited).toBe(1);
    expect(started.output()).toContain('HOLDFAST_ROLE');
    expect(await installation.serverProcesses()).toEqual([]);
  });

  testCase('a port that is taken stops PostgreSQL and Temporal', async (installation) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const started = installation.start({
      HOLDFAST_PORT: String((other.address() as AddressInfo).port),
    });
    expect(await started.exited).toBe(1);
    expect(started.output()).toMatch(
      /\nHOLDFAST_PORT: cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)/,
    );
    expect(await installation.leftRunning()).toEqual([]);
    await new Promise((resolve) => other.close(resolve));
  });

  testCase(
    'a master key that cannot be read stops PostgreSQL and Temporal',
    async (installation) => {
      const file = path.join(installation.folder, 'master.key');
      await rm(file);
      await mkdir(file);
      const started = installation.start();
      expect(await started.exited).toBe(1);
      expect(started.output()).toContain('Holdfast cannot start');
      expect(await installation.leftRunning()).toEqual([]);
    },
  );
});

describe('the servers of an initialised data folder', () => {
  const terminal = { line: () => undefined, progress: () => undefined };

  /** Starts the servers in this process, with the programs of the installation, after a change of it. */
  async function startServers(name: string, change: (installation: Installation) => Promise<void>) {
    await promisify(execFile)('cp', ['-a', path.join(root, 'first'), path.join(root, name)]);
    const installation = await createInstallation(name);
    await change(installation);
    const searchPath = process.env.PATH;
    process.env.PATH = installation.searchPath();
    try {
      await (await startStack({ folder: installation.folder, env: {}, terminal })).stop();
      return { outcome: 'started', left: [] };
    } catch (error) {
      return { outcome: String(error), left: await installation.leftRunning() };
    } finally {
      process.env.PATH = searchPath;
    }
  }

  test('stop PostgreSQL when Temporal fails to start', async () => {
    const { outcome, left } = await startServers('without-temporal', ({ setTemporal }) =>
      setTemporal('echo broken; exit 3'),
    );
    expect(outcome).toContain('Temporal ended with code 3');
    expect(left).toEqual([]);
  });

  test('stop Temporal when the database cluster is damaged', async () => {
    const { outcome, left } = await startServers('damaged', ({ folder }) =>
      rm(path.join(folder, 'postgres/global'), { recursive: true }),
    );
    expect(outcome).toContain('PostgreSQL ended with code');
    expect(left).toEqual([]);
  });
});
