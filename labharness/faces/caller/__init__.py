"""The client library: submits tasks to labs over a broker, follows them, gets their results.

```python
from labharness.faces.caller import Broker, SyncCaller

broker = Broker("amqps://my-program:PASSWORD@broker.example/%2Fhcp")
with SyncCaller(broker, Path("my-program.sqlite")) as caller:
    task = caller.submit("my-lab", payload)
    for each in caller.events(task):
        ...
    end = caller.result(task)
```

`AsyncCaller` is the same for programs with an event loop. Needs the extra ``service``.
"""

from labharness.faces.broker.connection import Broker
from labharness.faces.caller.caller import AnswerLate, AsyncCaller, NotOurs, NotSecured
from labharness.faces.caller.caller_file import CallerFileFailed, KeyReused, UnknownTask
from labharness.faces.caller.connection import BrokerAway, BrokerRefused, NoCallee, QueueTaken
from labharness.faces.caller.sync import SyncCaller
from labharness.faces.caller.task_state import Gap, KnownSession, KnownTask

__all__ = [
    "AnswerLate",
    "AsyncCaller",
    "Broker",
    "BrokerAway",
    "BrokerRefused",
    "CallerFileFailed",
    "Gap",
    "KeyReused",
    "KnownSession",
    "KnownTask",
    "NoCallee",
    "NotOurs",
    "NotSecured",
    "QueueTaken",
    "SyncCaller",
    "UnknownTask",
]
