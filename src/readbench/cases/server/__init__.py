"""The service: one case library for a team, over HTTP, with a web page; needs the extra `service` as a whole.

```
settings.py    limits, and which methods may be asked for
keys.py        who may do what: random tokens, kept as hashes
audit.py       who did what, as JSON lines
metrics.py     what is counted
work.py        blocking calls beside the event loop: bounded, with a time limit
service.py     the library and all of the above, as the routes see them
gate.py        around every request: size, origin, headers, record
access.py      the key of a request, and the role that a route asks for
bodies.py      what is sent and answered beside the library's own models
uploads.py     from what was sent to a window
api_read.py    routes for programs that read
api_write.py   routes for programs that write
signals.py     a window as the page draws it
events.py      the life of a case, in words
overview.py    the library at a glance
words.py       how pages write times, shares and addresses
pages.py       routes for people; templates/ and static/
app.py         everything put together
serve.py       a real server: where it binds, TLS, how it ends
load.py        how fast it answers
```
"""
