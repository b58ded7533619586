# mcpz in a container, which takes the place of the sandbox: one tool, over HTTP, for clients with the token.
#
#     docker build -t mcpz .
#     docker run --rm -p 127.0.0.1:8000:8000 -e MCP_HTTP_TOKEN=… mcpz
#
# The server is then at http://localhost:8000/mcp. For another host name, add --allowed-host NAME.
# If commands need other programs, install them in an image of your own, FROM this one.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p mcpz && install -D target/release/mcpz /out/mcpz

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="mcpz" \
    org.opencontainers.image.description="The shell that language models use" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0"
# The MCP registry requires the name from server.json.
ARG SERVER_NAME=io.github.OWNER/mcpz
LABEL io.modelcontextprotocol.server.name="$SERVER_NAME"
RUN groupadd --gid 10001 mcpz \
    && useradd --uid 10001 --gid mcpz --no-log-init --create-home --home-dir /work mcpz \
    && install -d -o mcpz -g mcpz -m 0700 /var/lib/mcpz
COPY --from=build /out/mcpz /usr/local/bin/mcpz
COPY LICENSE-MIT LICENSE-APACHE /usr/local/share/doc/mcpz/
COPY packaging/container.toml /etc/mcpz/config.toml
# As numbers, so that Kubernetes can check that this is not root.
USER 10001:10001
WORKDIR /work
# The file in the home folder could be changed by commands.
ENV MCPZ_CONFIG=/etc/mcpz/config.toml XDG_STATE_HOME=/var/lib MCP_HTTP_BIND=0.0.0.0:8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=12s --start-period=5s CMD ["/usr/local/bin/mcpz", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/mcpz", "server", "shell", "--http", "--tools", "execute"]
