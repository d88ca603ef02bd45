from __future__ import annotations
import json
from dataclasses import replace
import numpy as np, pytest
from readbench.cases.watch import *
from tests.cases.samples import FAST
from tests.cases.watch.conftest import *
from tests.cases.watch.plant import T0, Plant

def test_second_alert_without_detector(watch):
    plant, said = Plant(), []
    plant.now = T0 + LEARNED
    w = watch(plant, said, settings=WatchSettings(method=FAST, normals="none", firm=0.999))
    w.alert("pump 0", plant.now, "A", "k1")
    told = go(w, plant, 80)
    print([(o.kind, o.trigger) for o in told], w.tracks["pump 0"].event)
    w.alert("pump 0", plant.now, "B", "k2")
    told = go(w, plant, 80)
    print([(o.kind, o.trigger) for o in told], w.tracks["pump 0"].event)
    assert told

def test_quiet(watch):
    plant, said = Plant(steps=9000), []
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20, 60)
    w = watch(plant, said)
    closed = None
    seen = []
    for i in range(200):
        go(w, plant, 1, every=1)
        t = w.tracks["pump 0"]
        seen.append((i, t.event is not None, t.quiet, bool(t.scores[-1] > 1)))
    for s in seen: print(s)

def test_old_state(watch, tmp_path):
    plant = Plant(); plant.now = T0 + LEARNED
    w = watch(plant); w.close()
    p = tmp_path/"state"/"normals.json"
    k = json.loads(p.read_text())
    for v in k.values(): v.pop("units")
    p.write_text(json.dumps(k))
    watch(plant)

def test_old_event(watch, tmp_path):
    plant = Plant(); plant.now = T0 + LEARNED
    w = watch(plant); w.close()
    p = tmp_path/"state"/"state.json"
    k = json.loads(p.read_text())
    for v in k["assets"].values(): v["event"] = dict(key="x", onset=v["last"]-3, seen=v["last"], trigger="departure", looks=[0.125], belief=["",0.0], settled=False)
    p.write_text(json.dumps(k))
    watch(plant)

def test_false_alarms_changed(watch, tmp_path):
    plant = Plant(); plant.now = T0 + LEARNED
    w = watch(plant); a = w.tracks["pump 0"].detector.limits; w.close()
    said = []
    w = watch(plant, said, settings=replace(SETTINGS, false_alarms_a_day=0.001)); b = w.tracks["pump 0"].detector.limits
    print(a, b, said)
    assert (a != b).any()

def test_away_at_restart_without_detector(watch):
    plant = Plant(); plant.now = T0 + 10
    w = watch(plant); w.close()
    plant.away = True
    watch(plant)

@pytest.mark.parametrize("seed", range(12))
def test_peace(watch, seed):
    plant = Plant(["pump 0", "pump 1"], seed=seed)
    plant.now = T0 + LEARNED
    said = []
    assert go(watch(plant, said), plant, 3000, every=20) == []
    assert not any("departs (" in words for words in said)
