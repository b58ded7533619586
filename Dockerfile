# mcpz for a sandbox of its own: one tool, over HTTP, for whoever has the token.
#
#     docker build -t mcpz .
#     docker run --rm -p 127.0.0.1:8000:8000 -e MCP_HTTP_TOKEN=… mcpz
#
# is then at http://localhost:8000/mcp; a server with another name is told so with --allowed-host.
# What else commands need is installed in an image that is built FROM this one.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p mcpz && install -D target/release/mcpz /out/mcpz

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="mcpz" \
    org.opencontainers.image.description="The shell that language models use" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0"
# The registry of MCP servers wants the name that is in server.json.
ARG SERVER_NAME=io.github.OWNER/mcpz
LABEL io.modelcontextprotocol.server.name="$SERVER_NAME"
RUN groupadd --gid 10001 mcpz \
    && useradd --uid 10001 --gid mcpz --no-log-init --create-home --home-dir /work mcpz \
    && install -d -o mcpz -g mcpz -m 0700 /var/lib/mcpz
COPY --from=build /out/mcpz /usr/local/bin/mcpz
COPY LICENSE-MIT LICENSE-APACHE /usr/local/share/doc/mcpz/
COPY packaging/container.toml /etc/mcpz/config.toml
# By number, so that Kubernetes can tell that it is not root.
USER 10001:10001
WORKDIR /work
# Not the one in the home, which commands could write.
ENV MCPZ_CONFIG=/etc/mcpz/config.toml XDG_STATE_HOME=/var/lib MCP_HTTP_BIND=0.0.0.0:8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=12s --start-period=5s CMD ["/usr/local/bin/mcpz", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/mcpz", "server", "shell", "--http", "--tools", "execute"]
