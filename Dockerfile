# One image for all roles: HOLDFAST_ROLE selects the role of a container.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
# Building the console needs devDependencies, running it does not.
RUN node processes/cli/bundle.ts && npm prune --omit=dev && ./docker/trim

FROM ${BASE_IMAGE}
ENV NODE_ENV=production HOLDFAST_HOST=0.0.0.0 HOLDFAST_PORT=8080
# The SDK of Temporal verifies servers with these certificates; Node has its own (docs/configuration.md#tls).
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN groupadd --gid 1000 holdfast && useradd --uid 1000 --gid holdfast --home-dir /app --no-create-home holdfast \
  && mkdir -p /var/lib/holdfast/backups && chown holdfast:holdfast /var/lib/holdfast/backups \
  && ln -s /app/docker/holdfast /usr/local/bin/holdfast
COPY --from=build /usr/local/bin/node /usr/local/bin/node
WORKDIR /app
COPY --from=build /app ./
USER holdfast
EXPOSE 8080
# Whether the process responds. Whether it can serve requests is /readyz, which a proxy asks: no container is
# better off restarted because the database is away. A worker and an API both answer; a runner keeps a heartbeat.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "processes/cli/health.ts"]
# Starts node directly: npm does not forward SIGTERM.
CMD ["node", "processes/serve.js"]
