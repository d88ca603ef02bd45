"""What a run may cost is said before it starts, and what the command says goes before the profile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from readbench.benchmark.runs import Plan, forecasts, run
from readbench.cli import app
from readbench.engine.llm import ModelOptions, Spending
from readbench.engine.llm._settings import load_profile
from readbench.errors import UsageError
from tests.engine.llm.conftest import Configure
from tests.engine.llm.server import Answered, serving
from tests.engine.llm.test_rerank import backwards

LIST = "euclidean+llm(model=m,pool=3,channels=2,points=8)"
PRICES = {"input_price": 3.0, "output_price": 15.0, "images": "none"}
PROMPTS = (
    'context = ""\nquery = "QUERY"\nitem = "CANDIDATE {id}"\nlabel = ""\n[list]\nsystem = "Mine."\nquestion = "?"\n'
)


def plan(*methods: str) -> Plan:
    return Plan(datasets=("sim_ecg",), methods=methods, seeds=(0,), levels=(0,))


def command(folder: Path, *options: str) -> Result:
    fixed = ["run", "--datasets", "sim_ecg", "--methods", LIST, "--rho", "0", "--seed", "0", "--out", str(folder)]
    return CliRunner().invoke(app, [*fixed, *options])


def silent(_: object) -> Answered:
    pytest.fail("nobody may be asked")


@pytest.mark.parametrize(
    ("method", "provider"),
    [
        (LIST, "anthropic"),
        (LIST.replace("=m", "=m-evidence"), "anthropic"),
        (LIST, "chatts-http"),
        (LIST, "toto-http"),
        ("classify(model=m,channels=2,points=8)", "anthropic"),
    ],
)
def test_the_forecast_is_near_the_estimate_from_all_questions(
    method: str, provider: str, configure: Configure, tmp_path: Path
) -> None:
    """The estimate is what a cell says that its budget has no room for."""
    configure("m", provider=provider, base_url="http://127.0.0.1:9", max_calls=0, **PRICES)
    (forecast,) = forecasts(plan(method), tmp_path / "run")
    (failed,) = run(plan(method), tmp_path / "run").failures
    said = re.search(r"needs up to (\d+) calls, \$([\d.]+) more", failed.failure)
    assert said is not None
    assert (forecast.model, forecast.dataset, forecast.most.calls) == ("m", "sim_ecg", int(said[1]))
    assert forecast.most.cost == pytest.approx(float(said[2]), rel=0.02)


def test_pictures_are_part_of_the_forecast(configure: Configure, tmp_path: Path, own_cache: Path) -> None:
    costs = []
    for images in ("none", "sheet"):
        configure("m", provider="anthropic", **(PRICES | {"images": images}))
        costs.append(forecasts(plan(LIST), tmp_path / "run")[0].most.cost)
    pixels = 4 * 2 * 200 * 110  # four windows of two channels
    assert costs[1] - costs[0] == pytest.approx(100 * pixels / 750 * 3.0 / 1e6, rel=0.01)
    assert not (own_cache / "llm" / "plots").exists()


def test_finished_cells_cost_nothing_and_other_methods_build_nothing(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "unused"))
    assert forecasts(plan("euclidean"), tmp_path / "run") == []
    assert not (tmp_path / "unused").exists()
    with serving(backwards) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, **PRICES)
        assert forecasts(plan(LIST), tmp_path / "run")[0].most.calls == 100
        run(plan(LIST), tmp_path / "run")
    assert forecasts(plan(LIST), tmp_path / "run") == []


def test_what_cannot_run_has_no_forecast(tmp_path: Path) -> None:
    assert forecasts(plan(LIST), tmp_path / "run") == []


def test_spending_adds_up() -> None:
    assert sum([Spending(2, 0.5), Spending(1, 0.25)], Spending()) == Spending(3, 0.75)


def test_options_go_before_the_file(configure: Configure) -> None:
    configure("m", provider="anthropic", max_calls=7, **PRICES)
    told = load_profile("m", ModelOptions(max_calls=3, max_cost=0.5))
    assert (told.max_calls, told.max_cost, told.prompts) == (3, 0.5, "")
    assert (load_profile("m").max_calls, load_profile("m").max_cost) == (7, None)
    configure("m", provider="anthropic")
    with pytest.raises(UsageError, match="max_cost needs input_price"):
        load_profile("m", ModelOptions(max_cost=0.5))


@pytest.mark.parametrize(
    ("option", "limit", "budget"),
    [("--max-calls=99", "max_calls = 99", "99 calls"), ("--max-cost=0.01", "max_cost = 0.01", r"\$0\.01")],
)
def test_a_budget_of_the_command_is_kept_and_the_estimate_stands_before_the_run(
    option: str, limit: str, budget: str, configure: Configure, tmp_path: Path
) -> None:
    with serving(silent) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, **PRICES)
        done = command(tmp_path / "run", option)
        assert not loopback.asked
    assert done.exit_code == 1
    assert limit in " ".join(done.output.split())
    total = rf"m: up to 100 calls, .* spent so far 0 calls, \$0\.00; budget {budget}\n"
    found = re.search(rf"m on sim_ecg: up to 100 calls, \$[\d.]+\n{total}", done.output)
    assert found
    assert found.start() < done.output.index("1 failed")


def test_without_prices_no_dollars_are_told(configure: Configure, tmp_path: Path) -> None:
    configure("m", provider="anthropic", base_url="http://127.0.0.1:9", images="none")
    told = command(tmp_path / "run", "--max-calls=0").output
    total = "m: up to 100 calls; spent so far 0 calls; budget 0 calls; dollars are not known without input_price"
    assert total in told
    assert "$" not in told


def test_prompts_of_the_command_take_the_place_of_the_profile_s(configure: Configure, tmp_path: Path) -> None:
    prompts = tmp_path / "mine.toml"
    prompts.write_text(PROMPTS)
    with serving(backwards) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, **PRICES)
        assert "1 cells computed" in command(tmp_path / "run").output
        assert "1 cells computed" in command(tmp_path / "run", "--prompts", str(prompts)).output
        systems = [asked.body["system"] for asked in loopback.asked]
        assert systems[100:] == ["Mine."] * 100
        assert not any("Mine." in system for system in systems[:100])
        assert "0 cells computed, 1 already there" in command(tmp_path / "run", "--prompts", str(prompts)).output
    assert command(tmp_path / "run", "--prompts", str(tmp_path / "none.toml")).exit_code == 2
