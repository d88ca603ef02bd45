"""The service: one case library for a team, over HTTP, with a web page; needs the extra `service` as a whole.

```
settings.py   limits, and which methods may be asked for
keys.py       who may do what: random tokens, kept as hashes
audit.py      who did what, as JSON lines
gate.py       around every request: size, origin, headers, log, metrics
access.py     the key of a request, and the role that a route asks for
work.py       blocking calls beside the event loop: bounded, with a time limit
bodies.py     what is sent and answered beside the library's own models
uploads.py    from a sent file to a window
signals.py    a window as the page draws it
overview.py   the library at a glance
api.py        the routes for programs, in api_read.py and api_write.py
pages.py      the routes for people
app.py        everything put together
serve.py      a real server: where it binds, TLS, how it ends
load.py       how fast it answers
```
"""
