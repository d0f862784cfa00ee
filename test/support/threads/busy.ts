/** A task of a thread pool: `spin` never ends, `allocate` takes all memory, others are returned. */
export default function work(task: string): string {
  if (task === 'fail') throw new Error('the task failed');
  const kept: number[][] = [];
  while (task === 'spin' || task === 'allocate')
    if (task === 'allocate') kept.push(Array.from({ length: 100_000 }, Math.random));
  return task;
}
