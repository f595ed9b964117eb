# One image for every service of compose.yaml. It holds the installed wheel, not the checkout.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements/ requirements/
RUN python -m venv /opt/kernelhouse \
    && /opt/kernelhouse/bin/pip install --no-cache-dir --require-hashes -r requirements/dagster.txt
COPY LICENSE NOTICE README.md pyproject.toml ./
COPY pipeline/ pipeline/
COPY schemas/ schemas/
COPY warehouse/ warehouse/
RUN /opt/kernelhouse/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
COPY --from=build /opt/kernelhouse /opt/kernelhouse
COPY deploy/production/ /opt/dagster/
# A named volume takes over the owner of the folder that it covers.
RUN useradd --system --create-home kernelhouse \
    && mkdir -p /data/dagster/logs \
    && chown -R kernelhouse /data /opt/dagster
USER kernelhouse
WORKDIR /data
ENV PATH=/opt/kernelhouse/bin:$PATH \
    DAGSTER_HOME=/opt/dagster \
    KERNELHOUSE_DATA=/data \
    PYTHONUNBUFFERED=1
EXPOSE 3000
CMD ["kernelhouse", "--help"]
