/**
 * Answers many small questions with few large ones: the questions that come in while one batch is
 * answered are the next batch, of at most `maxSize`. One batch is in progress at a time. A failure
 * of a batch is the failure of all its questions. A batch first waits for more questions until
 * `gather` resolves, unless it is full.
 */
export function createBatches<Question, Answer>(
  maxSize: number,
  answer: (
    questions: readonly Question[],
  ) => Promise<(question: Question) => Answer | Promise<Answer>>,
  gather?: () => Promise<unknown>,
): (question: Question) => Promise<Answer> {
  type Entry = {
    question: Question;
    resolve: (answer: Answer | Promise<Answer>) => void;
    reject: (reason: unknown) => void;
  };
  const waiting: Entry[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      if (gather && waiting.length < maxSize) await gather();
      const batch = waiting.splice(0, maxSize);
      try {
        const answerOf = await answer(batch.map(({ question }) => question));
        for (const { question, resolve } of batch) resolve(answerOf(question));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    isRunning = false;
  }

  return (question) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    waiting.push({ question, resolve, reject });
    if (!isRunning) void run();
    return promise;
  };
}
