# docker build -t palimpsest . && docker run -p 127.0.0.1:8484:8484 -v palimpsest:/data palimpsest
# The base is named exactly. To hold it to the byte, build with the digest that your registry shows for it:
#   docker build --build-arg PYTHON=python:3.12.13-slim-bookworm@sha256:... -t palimpsest .
ARG PYTHON=python:3.12.13-slim-bookworm
FROM ${PYTHON} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE scripts/constraints.txt ./
COPY proxy proxy
COPY config config
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --constraint constraints.txt .
# The model goes into the image, so that a container needs no network but its upstream.
RUN PALIMPSEST_MODEL__CACHE=/model /venv/bin/palimpsest model install

FROM ${PYTHON}
COPY --from=build /venv /venv
COPY --from=build /model /model
RUN useradd --create-home palimpsest && install -d -o palimpsest -m 700 /data
USER palimpsest
# Inside a container every address is its own; who may connect is decided by the port that is published. The operator's
# endpoints stay shut until PALIMPSEST_ADMIN_TOKEN is set.
ENV PATH=/venv/bin:$PATH \
    PALIMPSEST_HOST=0.0.0.0 \
    PALIMPSEST_DATA=/data \
    PALIMPSEST_MODEL__CACHE=/model \
    PALIMPSEST_MODEL__DOWNLOAD=never \
    PALIMPSEST_LOG__FORMAT=json
VOLUME /data
EXPOSE 8484
HEALTHCHECK --start-period=20s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8484/healthz', timeout=3)"]
CMD ["palimpsest", "serve"]
