# docker build -t palimpsest . && docker run -p 127.0.0.1:8484:8484 -v palimpsest:/data palimpsest
# compose, Kubernetes and systemd: config/deploy and docs/containers.md.
# The base is named exactly. To hold it to the byte, build with the digest that your registry shows for it:
#   docker build --build-arg PYTHON=python:3.12.13-slim-bookworm@sha256:... -t palimpsest .
ARG PYTHON=python:3.12.13-slim-bookworm
FROM ${PYTHON} AS build
ARG UV=0.13.8
RUN pip install --no-cache-dir uv==${UV}
WORKDIR /src
COPY pyproject.toml README.md LICENSE scripts/constraints.txt ./
COPY proxy proxy
COPY config config
# Bytecode is made here, as the container may not write beside the code.
RUN uv venv --python "$(command -v python)" /venv \
    && uv pip install --python /venv/bin/python --no-cache --compile-bytecode --constraint constraints.txt ".[otel,postgres]"
# The model goes into the image, so that a container needs no network but its upstream. Without it (--build-arg
# WITH_MODEL=no) memory searches by words, or fetches the model: PALIMPSEST_MODEL__DOWNLOAD=auto, and a cache in /data.
ARG WITH_MODEL=yes
RUN mkdir /model && if [ "${WITH_MODEL}" = yes ]; then PALIMPSEST_MODEL__CACHE=/model /venv/bin/palimpsest model install; fi

FROM ${PYTHON}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Palimpsest" \
    org.opencontainers.image.description="A transparent, OpenAI-compatible proxy that gives any LLM application durable memory" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="${REVISION}"
# The number is fixed, so that volumes keep their owner and Kubernetes can see that it is not root.
RUN groupadd --gid 10001 palimpsest \
    && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin palimpsest \
    && install -d -o palimpsest -g palimpsest -m 700 /data
COPY --from=build /venv /venv
COPY --from=build /model /model
USER 10001:10001
# Inside a container every address is its own; who may connect is decided by the port that is published. The operator's
# endpoints stay shut until PALIMPSEST_ADMIN_TOKEN is set.
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PALIMPSEST_HOST=0.0.0.0 \
    PALIMPSEST_DATA=/data \
    PALIMPSEST_MODEL__CACHE=/model \
    PALIMPSEST_MODEL__DOWNLOAD=never \
    PALIMPSEST_LOG__FORMAT=json
VOLUME /data
EXPOSE 8484
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["palimpsest", "healthcheck"]
# SIGTERM ends it with status 0, running streams first; it needs no init process.
STOPSIGNAL SIGTERM
CMD ["palimpsest", "serve"]
