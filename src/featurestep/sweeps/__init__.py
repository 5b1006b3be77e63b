"""Resumable experiments: grids of problems, tasks at every point, results in a store.

Other rooms import from here only. `sweep` goes through all of it: `read_sweep` → `make_plan` →
`open_store`, `current_plan` → `execute` → `make_dataset`.
"""

from ..core.errors import EngineError, StoreError, StoreInUse
from .engines import (
    EngineChoice,
    Job,
    Outcome,
    Report,
    after_death,
    installed,
    processes,
    run_elsewhere,
    run_job,
    serial,
)
from .identity import answers_of, describe, difference, key_of, tag_of, under
from .plan import (
    STATES,
    Plan,
    SweepProgress,
    SweepStatus,
    current_plan,
    earlier_results,
    execute,
    make_plan,
    make_status,
    open_store,
    under_numerics,
)
from .results import check_target, export, make_dataset, make_table, sweep
from .spec import load_sweep, read_sweep
from .store import LAYOUT, MISSING, Store
from .tasks import TASKS, Task, Unit, Values
