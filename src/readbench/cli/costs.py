"""What language models may cost, before a run starts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from readbench.experiment.costs import Forecast
from readbench.llm import ModelOptions, Spending, standing


def show_costs(forecasts: Sequence[Forecast], models: ModelOptions, console: Console) -> None:
    """One line a model and dataset, and one with the sum and the budget a model; nothing where no model is asked.

    Args:
        forecasts: those of one model stand together.
        models: what goes before the profiles.
        console: where to.
    """
    for model, own in groupby(forecasts, key=lambda forecast: forecast.model):
        total = Spending()
        for forecast in own:
            total += forecast.most
            _line(console, f"{model} on {forecast.dataset}: up to {forecast.most}")
        _line(console, f"{model}: up to {total}; {standing(model, models)}")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
