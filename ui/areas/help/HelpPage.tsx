import { PageLink } from '../../parts/PageLink.tsx';
import { guideGroups, titleOfGuide } from './guides.ts';
import classes from './Help.module.css';

/** All guides. */
export function HelpPage() {
  return (
    <div className={classes.page}>
      <h1 className={classes.title}>Guides</h1>
      <p className={classes.muted}>
        They are those of this version. Commands in them run against the address of this
        installation. The <a href="/api/docs">API reference</a> has every operation.
      </p>
      <div className={classes.groups}>
        {guideGroups().map(({ title, names }) => (
          <section key={title} aria-label={title}>
            <h2 className={classes.groupTitle}>{title}</h2>
            <ul className={classes.names}>
              {names.map((guide) => (
                <li key={guide}>
                  <PageLink className={classes.link} to="/help/$guide" params={{ guide }}>
                    {titleOfGuide(guide)}
                  </PageLink>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  );
}
