import './nodeVersion.js';

/** What production starts. Unlike `main.ts`, every version of Node can read it, and says which version is needed. */
await import('./beginning.ts');
await import('./main.ts');
