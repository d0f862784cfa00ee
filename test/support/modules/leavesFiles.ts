import { jobType, Type } from 'holdfast/job-type';

/** Leaves files, and says the secret that it got. */
export const leavesFiles = jobType({
  apiVersion: 1,
  name: 'test.leaves-files',
  summary: 'Leaves files',
  access: 'open',
  payload: Type.Object(
    { name: Type.String(), lines: Type.Integer() },
    { additionalProperties: false },
  ),
  secrets: { TOKEN: { secret: 'of-modules' } },
  retry: { maxAttempts: 1 },
  async run({ name, lines }, { artifact, log, secrets }) {
    const token = secrets.TOKEN ?? '';
    log('info', `token ${token}, ${Buffer.from(token).toString('base64')}`);
    const { bytes, sha256 } = await artifact(name, linesOf(lines));
    return { bytes, sha256, length: token.length, token };
  },
});

async function* linesOf(count: number): AsyncGenerator<string | Uint8Array> {
  for (let i = 1; i <= count; i++)
    yield await Promise.resolve(i % 2 === 0 ? `${i}\n` : new TextEncoder().encode(`${i}\n`));
}
