# One image for the operator, the agent and the inspection Jobs: `shipfitter operator`, `shipfitter agent`, ...
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source

# Everything is pinned by hash, the build backend too: it is among the tools of development.
COPY requirements.txt requirements-dev.txt ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes -r requirements-dev.txt \
 && python -m venv --without-pip /opt/shipfitter \
 && /opt/build/bin/pip --python /opt/shipfitter/bin/python install --require-hashes -r requirements.txt

COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /wheel . \
 && /opt/build/bin/pip --python /opt/shipfitter/bin/python install --no-deps /wheel/*.whl \
 && /opt/shipfitter/bin/python -m compileall -q /opt/shipfitter/lib

FROM python:3.13-slim
# A name for the uid: some libraries look it up.
RUN groupadd --gid 65532 shipfitter \
 && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin shipfitter
COPY --from=build /opt/shipfitter /opt/shipfitter
# The root file system is read-only: only /tmp is written to. Logs must not wait in a buffer.
ENV PATH=/opt/shipfitter/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["shipfitter"]
CMD ["--help"]
