const KEY = 'holdfast-reloaded';

/**
 * After a deployment, an open page asks for parts of the console that are not there any more. It then
 * reloads once, which loads the new console at the page that was opened. `bundle` identifies the one
 * that runs: if the reloaded one cannot load a part either, the page shows the error.
 */
export function reloadOnceAfterDeploy(bundle: string): void {
  addEventListener('vite:preloadError', (event) => {
    if (sessionStorage.getItem(KEY) === bundle) return;
    sessionStorage.setItem(KEY, bundle);
    event.preventDefault();
    location.reload();
  });
}
