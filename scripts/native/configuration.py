"""The configuration of supervisord: one program for each part of a stack."""

import shlex
import sys

from scripts.native.layout import Layout
from scripts.native.parts import Part, parts

# Paths are relative to the folder `run`, where supervisord and all parts work: the user's own
# path may hold characters that mean something in this file (%, #, ;).
_HEADER = """\
[supervisord]
nodaemon=true
silent=true
logfile=../log/supervisord.log
logfile_maxbytes=5MB
logfile_backups=1
pidfile=supervisord.pid
childlogdir=../log
[unix_http_server]
file=supervisor.sock
chmod=0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""

# `setpriv --pdeathsig` ends a part when supervisord is killed: nothing is ever orphaned.
_PROGRAM = """\
[program:{name}]
command=setpriv --pdeathsig TERM {rights}{command}
environment={environment}
priority={priority}
autostart=false
autorestart=true
startsecs={pause_before_seconds}
startretries=1000
stopsignal={stop_signal}
stopwaitsecs={stop_seconds}
killasgroup=true
redirect_stderr=true
stdout_logfile=../log/{name}.log
stdout_logfile_maxbytes=5MB
stdout_logfile_backups=1
"""

# Each of the two starts the other again. The guard does not end with supervisord: its input does,
# for which it waits, and then it starts all as it was, again and again until that succeeds.
GUARD = "guard"
_WATCH = f'read -r _; until "$@" </dev/null >../log/{GUARD}.log 2>&1; do sleep 5; done'
_GUARD = f"""\
[program:{GUARD}]
command=sh -c '{_WATCH}' sh {{again}}
priority=999
autostart=false
autorestart=true
startsecs=0
stdout_logfile=NONE
redirect_stderr=true
"""
_AGAIN = ["-m", "scripts.native.up", "--detach", "--again", "--data", ".."]

# The gateway alone may listen on a port below 1024 (privileges.py).
_NO_RIGHTS = "--inh-caps=-all --ambient-caps=-all "
# What ends sooner is started again after a pause: mongod on a full disk would take a whole CPU.
PAUSE_BEFORE_SECONDS = 5
STOP_SECONDS = 30  # a part that has not ended by then is killed


def configuration(layout: Layout) -> str:
    """Return the text of supervisord.conf."""
    programs = [_program(part, n) for n, part in enumerate(parts(layout), start=1)]
    guard = _GUARD.format(again=_escaped(shlex.join([sys.executable, *_AGAIN])))
    return "\n".join([_HEADER, *programs, guard])


def _program(part: Part, priority: int) -> str:
    pairs = (f'{key}="{value}"' for key, value in part.environment.items())
    return _PROGRAM.format(
        name=part.name,
        rights="" if part.name == "gateway" else _NO_RIGHTS,
        command=_escaped(shlex.join(part.command)),
        environment=_escaped(",".join(pairs)),
        priority=priority,
        stop_signal="QUIT" if part.name == "gateway" else "TERM",  # nginx finishes its answers
        pause_before_seconds=PAUSE_BEFORE_SECONDS,
        stop_seconds=STOP_SECONDS,
    )


def _escaped(text: str) -> str:
    """Escape what supervisord expands or takes for a comment; `''` ends and reopens a quote."""
    return text.replace("%", "%%").replace(" #", " ''#").replace(" ;", " '';")
