import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { promisify } from 'node:util';

const run = promisify(execFile);

const buildah = async (...args: string[]): Promise<string> =>
  (await run('buildah', args, { maxBuffer: 2 ** 26 })).stdout.trim();

/** What the image says about its containers, as Docker reads it. */
type ImageConfig = {
  User: string;
  Env: string[];
  Cmd: string[];
  WorkingDir: string;
  Healthcheck?: { Test: string[] };
};

/** The file system of an image, and how its containers are to run. */
export type Image = {
  root: string;
  config: ImageConfig;
  remove(): Promise<void>;
};

export async function openImage(name: string): Promise<Image> {
  const inspected = JSON.parse(await buildah('inspect', '--type', 'image', name)) as {
    Docker: { config: ImageConfig };
  };
  const container = await buildah('from', '--pull-never', name);
  return {
    root: await buildah('mount', container),
    config: inspected.Docker.config,
    remove: async () => void (await buildah('rm', container)),
  };
}

/**
 * The kernel's part of a container: mounts and process ids of its own. The program replaces the shell, so that it is
 * the first process, which gets no default handling of signals.
 */
const IN_NAMESPACES =
  'root=$1; user=$2; folder=$3; shift 3; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"; ' +
  'exec chroot --userspec="$user" "$root" /usr/bin/env -i -C "$folder" "$@"';

export type Container = {
  /** Sends SIGTERM to the first process; resolves with its exit code. */
  terminate(): Promise<number | null>;
  kill(): void;
  exited: Promise<number | null>;
};

/** Starts a command of the image as the first process of a container, on the network of this machine. */
export function startContainer(
  { root, config }: Image,
  env: Record<string, string>,
  { command = config.Cmd, logFile }: { command?: readonly string[]; logFile: string },
): Container {
  const variables = [
    ...config.Env,
    ...Object.entries(env).map(([key, value]) => `${key}=${value}`),
  ];
  const args = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', IN_NAMESPACES, 'sh'];
  const child = spawn(
    'unshare',
    [...args, root, config.User, config.WorkingDir, ...variables, ...command],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const log = createWriteStream(logFile, { flags: 'a' });
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return {
    exited,
    kill: () => void child.kill('SIGKILL'),
    async terminate() {
      process.kill(await firstProcess(child), 'SIGTERM');
      return exited;
    },
  };
}

/** Runs a command of the image to its end. Error: it fails. */
export async function runInContainer(
  image: Image,
  env: Record<string, string>,
  options: { command: readonly string[]; logFile: string },
): Promise<void> {
  const code = await startContainer(image, env, options).exited;
  if (code !== 0) throw new Error(`${options.command.join(' ')} ended with ${code}`);
}

/** `unshare` waits for the first process of the container, which is its only child. */
async function firstProcess({ pid }: ChildProcess): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return Number(children.trim());
}
