import path from 'node:path';
import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';
import { parseGuide } from './guides/parseGuide.ts';

/** What the server replaces in index.html with the nonce of the response (`api/console/pages.ts`). */
const NONCE_PLACEHOLDER = '__CSP_NONCE__';

/** The API to which the development server passes requests on. */
const API = process.env.HOLDFAST_API ?? 'http://127.0.0.1:8080';

const EARLY_SCRIPTS = ['app/recover.js', 'app/theme/early.js'];

/** The same path in all versions, since a page must recover while processes of two versions answer. */
const EARLY_FILE = 'assets/early.js';

/**
 * Runs scripts before anything else: one recovers the page if its files are missing, and one sets the colours that
 * the user has chosen. They are a file, since the Content Security Policy forbids inline scripts, and no module, since
 * these run later.
 */
function earlyScripts(): Plugin {
  let isBuild = false;
  return {
    name: 'early-scripts',
    configResolved: (config) => void (isBuild = config.command === 'build'),
    buildStart() {
      if (!isBuild) return;
      const sources = EARLY_SCRIPTS.map((file) =>
        readFileSync(path.join(import.meta.dirname, file), 'utf8'),
      );
      this.emitFile({ type: 'asset', fileName: EARLY_FILE, source: sources.join('') });
    },
    transformIndexHtml: {
      order: 'post',
      handler: () =>
        (isBuild ? [EARLY_FILE] : EARLY_SCRIPTS).map((file) => ({
          tag: 'script',
          attrs: { src: `/${file}` },
          injectTo: 'head-prepend' as const,
        })),
    },
  };
}

/** Reads the guides of `docs/` when the console is built: the pages get no Markdown, and no markup. */
function guides(): Plugin {
  return {
    name: 'guides',
    enforce: 'pre',
    load(id) {
      if (!id.endsWith('.md')) return undefined;
      this.addWatchFile(id);
      return `export default ${JSON.stringify(parseGuide(readFileSync(id, 'utf8')))}`;
    },
  };
}

type Modules = { getModuleInfo(id: string): { importedIds: readonly string[] } | null };

/** These files and those that they import, without packages. */
function sourcesOf(files: readonly string[], modules: Modules): ReadonlySet<string> {
  const found = new Set<string>();
  const open = files.map((file) => path.join(import.meta.dirname, file));
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (found.has(id) || id.includes('node_modules')) continue;
    found.add(id);
    open.push(...(modules.getModuleInfo(id)?.importedIds ?? []));
  }
  return found;
}

/** A file of the bundle for what these files need beyond the frame. */
function groupOf(group: string, files: readonly string[]) {
  let sources: ReadonlySet<string> | undefined;
  return {
    name(id: string, modules: Modules): string | null {
      sources ??= sourcesOf(files, modules);
      return sources.has(id) ? group : null;
    },
  };
}

/** The build of the console, and `npm run ui`, the server for its development. */
export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  html: { cspNonce: NONCE_PLACEHOLDER },
  plugins: [earlyScripts(), guides()],
  build: {
    // Everything is a file: the Content Security Policy allows no other origin, and files are cached.
    assetsInlineLimit: 0,
    // Older browsers have no light-dark(); what replaces it for them does not know Mantine's scheme.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      output: {
        // A page needs a few files, not a hundred: a browser asks for six at a time. Packages of the frame, which
        // deployments rarely change, and the frame; the pages that are opened first; what many other pages need.
        codeSplitting: {
          groups: [
            { name: 'packages', tags: ['$initial'], test: /node_modules/ },
            { name: 'frame', tags: ['$initial'] },
            groupOf('home', ['areas/home/HomePage.tsx', 'app/shell/Notices.tsx']),
            groupOf('signIn', ['areas/auth/SignInPage.tsx']),
            { name: 'shared', minShareCount: 6 },
          ],
        },
      },
    },
  },
  server: {
    host: '127.0.0.1',
    port: 5_173,
    proxy: {
      '/api': {
        target: API,
        configure: (proxy) =>
          // The API accepts its cookies from pages of its own origin only.
          void proxy.on('proxyReq', (request) => request.setHeader('origin', API)),
      },
    },
  },
});
