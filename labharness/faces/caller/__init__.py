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

from labharness.faces.broker.connection import Broker as Broker
from labharness.faces.caller.caller import AnswerLate as AnswerLate
from labharness.faces.caller.caller import AsyncCaller as AsyncCaller
from labharness.faces.caller.caller import NotOurs as NotOurs
from labharness.faces.caller.caller import NotSecured as NotSecured
from labharness.faces.caller.caller_file import CallerFileFailed as CallerFileFailed
from labharness.faces.caller.caller_file import KeyReused as KeyReused
from labharness.faces.caller.caller_file import UnknownTask as UnknownTask
from labharness.faces.caller.connection import BrokerAway as BrokerAway
from labharness.faces.caller.connection import BrokerRefused as BrokerRefused
from labharness.faces.caller.connection import NoCallee as NoCallee
from labharness.faces.caller.connection import QueueTaken as QueueTaken
from labharness.faces.caller.sync import SyncCaller as SyncCaller
from labharness.faces.caller.task_state import Gap as Gap
from labharness.faces.caller.task_state import KnownSession as KnownSession
from labharness.faces.caller.task_state import KnownTask as KnownTask
