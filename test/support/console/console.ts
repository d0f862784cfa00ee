import { afterAll, afterEach, beforeAll } from '@jest/globals';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';
import { readConsoleBundle, type ConsoleBundle } from '../../../api/console/bundle.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { buildConsole } from '../../../ui/build.ts';
import { deleteTemporalSchedules, startAppOn, type TestApp } from '../app.ts';
import { createDatabase, type TestDatabase } from '../database.ts';
import { onTestFailure } from '../jest/failures.ts';
import { describeWith, pathOf } from '../programs.ts';
import { PASSWORD } from '../users.ts';
import { watch } from './page.ts';

/** Nothing on a page takes longer, also on a busy machine. */
const PAGE_MS = 20_000;

/**
 * Chromium refuses its sandbox to root, as which containers run. A page of a test does not live long enough for
 * compilers that make fast code slowly, nor is it worth a process that draws.
 */
const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--in-process-gpu',
  '--js-flags=--no-opt,--no-maglev,--single-threaded',
];

/** Files that one process runs share it. */
let bundle: Promise<ConsoleBundle> | undefined;
const consoleBundle = () => (bundle ??= buildConsole().then(readConsoleBundle));

/** The stack with the console, and a browser. */
export type TestConsole = ReturnType<typeof createConsole>;

/**
 * Like `describe`, for tests with the console in Chromium on one stack of their own. A test fails if one of its pages
 * has written an error to the browser's console, which is also where violations of the policy are reported.
 */
export function describeConsole(
  title: string,
  tests: (console: TestConsole) => void,
  env: Record<string, string> = {},
): void {
  describeWith('chromium', title, () => {
    const console = createConsole(env);
    beforeAll(() => console.start());
    afterEach(() => console.endTest());
    afterAll(() => console.stop());
    tests(console);
  });
}

/** The same for tests that run no job: starting what runs them would be most of the start. */
export function describePages(
  title: string,
  tests: (console: TestConsole) => void,
  env: Record<string, string> = {},
): void {
  describeConsole(title, tests, { ...env, HOLDFAST_ROLE: 'api' });
}

/** Pages of the test that runs, in all profiles. */
const contexts: BrowserContext[] = [];

const SHOWN_CHARACTERS = 3_000;

/** What a page shows, for those who read why a test has failed. */
async function screenOf(page: Page): Promise<string> {
  const text = page.locator('body').innerText({ timeout: 1_000 });
  return `${page.url()}\n${(await text.catch(String)).slice(0, SHOWN_CHARACTERS)}`;
}

onTestFailure(async () => {
  const pages = contexts.flatMap((context) => context.pages());
  for (const screen of await Promise.all(pages.map(screenOf)))
    process.stderr.write(`A page of the test that failed: ${screen}\n`);
});

/** Closes a profile. What a test does with requests may be in the middle of one: that is no error then. */
async function closeContext(context: BrowserContext): Promise<void> {
  const ignoring = { behavior: 'ignoreErrors' } as const;
  await Promise.all([context, ...context.pages()].map((each) => each.unrouteAll(ignoring)));
  await context.close();
}

function createConsole(env: Record<string, string>) {
  let database: TestDatabase | undefined;
  let app: TestApp | undefined;
  let browser: Browser | undefined;
  /** Ends everything that was started, also when a part of the start or of the end fails. */
  const started = new AsyncDisposableStack();
  const problems: string[] = [];
  const expected: RegExp[] = [];

  const base = () => assertDefined(app, 'app').client.base;

  async function startServer(): Promise<void> {
    const { url } = assertDefined(database, 'database');
    // The same address and queue again, after the first start.
    const again = app && { ...app.env, HOLDFAST_PORT: new URL(base()).port };
    const options = { consoleBundle: await consoleBundle() };
    app = await startAppOn(url, { ...env, ...again }, options);
  }

  return {
    async start(): Promise<void> {
      database = await createDatabase();
      started.defer(database.drop);
      started.defer(() => app?.stop());
      await startServer();
      started.defer(() => app && deleteTemporalSchedules(app.deps));
      browser = await chromium.launch({
        executablePath: pathOf('chromium'),
        args: CHROMIUM_ARGS,
      });
      started.defer(() => browser?.close());
    },

    stop: () => started.disposeAsync(),

    /** Starts the server again, at the same address, after `whileStopped`. */
    async restartServer(whileStopped: () => Promise<void>): Promise<void> {
      await assertDefined(app, 'app').stop();
      // The frame asks the server what is missing, also while it stops or starts.
      expected.push(
        /ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)/,
        /\/readyz\)$/,
      );
      await whileStopped();
      await startServer();
    },

    /** Closes the profiles of the test. Error: what their pages have complained about. */
    async endTest(): Promise<void> {
      await Promise.all(contexts.splice(0).map(closeContext));
      const patterns = expected.splice(0);
      const found = problems.splice(0).filter((text) => !patterns.some((each) => each.test(text)));
      if (found.length > 0) throw new Error(`Pages have reported errors:\n${found.join('\n')}`);
    },

    /** Errors that a test has caused itself, such as a missing asset. */
    expectProblem(pattern: RegExp): void {
      expected.push(pattern);
    },

    get app(): TestApp {
      return assertDefined(app, 'app');
    },

    get base(): string {
      return base();
    },

    /** A browser profile of its own, as another person has one. */
    async profile(options: BrowserContextOptions = {}): Promise<BrowserContext> {
      const context = await assertDefined(browser, 'browser').newContext({
        baseURL: base(),
        // Each step waits for the end of an animation.
        reducedMotion: 'reduce',
        ...options,
      });
      context.setDefaultTimeout(PAGE_MS);
      context.on('page', (page) => watch(page, problems));
      contexts.push(context);
      return context;
    },

    /** A profile in which a user has signed in before; its next page finds the session. */
    async profileOf(
      { username }: { username: string },
      options?: BrowserContextOptions,
    ): Promise<BrowserContext> {
      const context = await this.profile(options);
      const login = { username, password: PASSWORD, cookie: true };
      const response = await context.request.post('/api/auth/login/local', { data: login });
      if (!response.ok()) throw new Error(`The login failed: ${await response.text()}`);
      return context;
    },

    /** Opens a page of a user who has signed in before, and waits for the frame. */
    async open(
      user: { username: string },
      path = '/',
      options?: BrowserContextOptions,
    ): Promise<Page> {
      const context = await this.profileOf(user, options);
      const page = await context.newPage();
      await page.goto(path);
      await page.getByRole('main').and(page.locator('#main')).waitFor();
      return page;
    },
  };
}

/** Fills in the sign-in form, wherever it is shown. */
export async function signIn(page: Page, username: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
