# A gateway in a container: docs/operating.md says how it is run, and what a container cannot do.
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
# docker build --build-arg EXTRAS=anthropic: runtime, or one of anthropic, discord, google, matrix-e2e, mcp, media, postgres, slack, web and whisper.
ARG EXTRAS=runtime
COPY requirements/installer.txt requirements/${EXTRAS}.txt requirements/
# First, and alone: they change less often than the code. Exact versions, each with its hash.
RUN python -m venv /opt/koboshi \
    && /opt/koboshi/bin/pip install --no-cache-dir --require-hashes -r requirements/installer.txt \
    && /opt/koboshi/bin/pip install --no-cache-dir --require-hashes -r requirements/${EXTRAS}.txt
COPY src src
RUN /opt/koboshi/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/koboshi/bin/pip uninstall --yes hatchling editables

FROM python:3.13-slim
# The boundary around commands, where the engine allows namespaces; elsewhere Landlock is used (docs/safety.md).
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/koboshi /opt/koboshi
# The folder is there before the volume is: a new volume takes its owner from it.
RUN useradd --system --user-group --uid 10001 --home-dir /var/lib/koboshi --create-home koboshi
USER koboshi
WORKDIR /var/lib/koboshi
VOLUME /var/lib/koboshi
# The home is a folder in the volume that the gateway makes itself: it has to be its own, and closed.
ENV PATH=/opt/koboshi/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KOBOSHI_LOG=json \
    KOBOSHI_HOME=/var/lib/koboshi/home \
    KOBOSHI__GATEWAY__WORKDIR=/var/lib/koboshi/commands
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8642/readyz', timeout=4)"]
ENTRYPOINT ["koboshi"]
CMD ["run"]
