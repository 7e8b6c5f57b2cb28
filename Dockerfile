# All images of ours, one target each: gateway, acme, ingest, monitoring, mongo-init. They start with the
# same layers (Debian and Python; the web framework; the driver), which a box keeps and caches once.

# Waymark's version, said here alone: the images' label, /api/v1/system and the page tell it, and
# scripts/native/version.py gives it to a stack without Docker.
ARG VERSION=1.0.0
ARG BASE_IMAGE=debian:trixie-slim

FROM ${BASE_IMAGE} AS python
# Not read: with another value the packages here, and of all that is built on this, are fetched again.
ARG PACKAGES_DAY
COPY services/install-packages /usr/local/sbin/
RUN install-packages python3 tzdata \
    && groupadd --gid 10001 waymark \
    && useradd --uid 10001 --gid 10001 --no-create-home waymark
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY services/alive /usr/local/bin/

# What installs packages, and is in no image.
FROM python AS tools
RUN install-packages python3-venv \
    && python3 -m venv /opt/tools
ENV PIP_RETRIES=10

# What both services need, from the lock of the one that needs less.
FROM tools AS web-packages
COPY services/monitoring/requirements.txt /tmp/web.txt
RUN python3 -m venv --without-pip /opt/web \
    && /opt/tools/bin/pip --python /opt/web install --no-cache-dir --require-hashes \
        --only-binary :all: --requirement /tmp/web.txt \
    && ln -s /opt/web/lib/python3*/site-packages /opt/web/site

# What the ingest service needs beyond that: the driver of MongoDB.
FROM web-packages AS driver-packages
COPY services/ingest/requirements.txt /tmp/ingest.txt
RUN python3 -m venv --without-pip /opt/driver \
    && ln -s /opt/driver/lib/python3*/site-packages /opt/driver/site \
    && readlink --canonicalize /opt/web/site > /opt/driver/site/web.pth \
    && /opt/tools/bin/pip --python /opt/driver install --no-cache-dir --require-hashes \
        --only-binary :all: --requirement /tmp/ingest.txt

# What backups need beyond the driver: encryption, and a client of S3.
FROM tools AS backup-packages
COPY mongo/backup/requirements.txt /tmp/backup.txt
RUN python3 -m venv --without-pip /opt/backup \
    && /opt/tools/bin/pip --python /opt/backup install --no-cache-dir --require-hashes \
        --only-binary :all: --requirement /tmp/backup.txt \
    && ln -s /opt/backup/lib/python3*/site-packages /opt/backup/site

FROM python AS web
# What proves other sites, a provider of OpenID Connect, and a store of backups: the usual authorities.
RUN install-packages ca-certificates
COPY --from=web-packages /opt/web /opt/web

FROM web AS driver
COPY --from=driver-packages /opt/driver /opt/driver

FROM python AS ingest-code
COPY common /app/common
COPY services/ingest/ingest /app/ingest
COPY services/ingest/start.sh /app/
RUN python3 -m compileall -q /app/common /app/ingest

FROM python AS monitoring-code
COPY common /app/common
COPY services/monitoring/monitoring /app/monitoring
COPY services/monitoring/gunicorn.conf.py services/monitoring/patient_worker.py /app/
RUN python3 -m compileall -q /app


FROM python AS gateway
RUN install-packages nginx
COPY common /app/common
COPY gateway /app/gateway
RUN python3 -m compileall -q /app/common /app/gateway
WORKDIR /app
# A new volume takes the owner of the folder that it covers; so do /spool and /secrets below.
RUN install -d -o waymark -g waymark -m 0700 /run/waymark \
    && install -d -o waymark -g waymark -m 0711 /var/lib/waymark/acme
# The allocator: as below for the page's service. What NGINX frees once it has read its files goes
# back (2 MiB).
ENV GATEWAY_LISTEN=0.0.0.0:8080 GATEWAY_USER= HEALTH_PORT=8080 MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
ARG VERSION
LABEL org.opencontainers.image.version=$VERSION
USER 10001:10001
STOPSIGNAL SIGQUIT
HEALTHCHECK --interval=30s --timeout=40s --start-period=2m CMD ["alive"]
CMD ["python3", "-m", "gateway.start"]


FROM gateway AS acme
USER 0:0
RUN install-packages dehydrated
ARG VERSION
LABEL org.opencontainers.image.version=$VERSION
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK NONE
CMD ["python3", "-m", "gateway.acme"]


FROM driver AS ingest
COPY --from=ingest-code /app /app
WORKDIR /app
RUN install -d -o waymark -g waymark -m 0700 /spool \
    && install -d -o 999 -g 999 -m 0755 /backup-report
# One heap for all threads: several keep what they freed (3 MiB of the 64). And what is large is a mapping
# of its own, which goes back when it is freed: a heap keeps it (up to 7 MiB after 100,000 corrections).
ENV PYTHONPATH=/opt/driver/site:/opt/web/site INGEST_BIND=0.0.0.0:5001 HEALTH_PORT=5001 MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
ARG VERSION
ENV WAYMARK_VERSION=$VERSION
LABEL org.opencontainers.image.version=$VERSION
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=40s --start-period=2m CMD ["alive"]
CMD ["./start.sh"]


FROM web AS monitoring
COPY --from=monitoring-code /app /app
WORKDIR /app
# One heap, and each answer of a megabyte a mapping of its own, which goes back when it is freed.
ENV PYTHONPATH=/opt/web/site MONITORING_BIND=0.0.0.0:4000 HEALTH_PORT=4000 MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
ARG VERSION
ENV WAYMARK_VERSION=$VERSION
LABEL org.opencontainers.image.version=$VERSION
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=40s --start-period=2m CMD ["alive"]
CMD ["python3", "-m", "gunicorn", "-c", "gunicorn.conf.py"]


# The bootstrap. It has no need of the web framework, but with it its layers are the ingest service's.
FROM driver AS mongo-init
COPY --from=backup-packages /opt/backup /opt/backup
COPY common /app/common
COPY mongo /app/mongo
WORKDIR /app
# 999 is who MongoDB runs as in its own image: only it may read the key file.
RUN install -d -o 999 -g 999 -m 0700 /secrets \
    && install -d -o 999 -g 10001 -m 0750 /app-secret /page-secret \
    && install -d -o 999 -g 999 -m 0700 /backups \
    && install -d -o 999 -g 999 -m 0755 /backup-report
# One heap, and each piece of a backup a mapping of its own, which goes back when it is freed.
ENV PYTHONPATH=/opt/driver/site:/opt/backup/site MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
ARG VERSION
ENV WAYMARK_VERSION=$VERSION
LABEL org.opencontainers.image.version=$VERSION
USER 999:999
ENTRYPOINT ["python3", "-m"]
CMD ["mongo.bootstrap", "--topology", "mongo/topology.toml", "--secrets", "/secrets", "--directory", "mongo/directory.csv"]
