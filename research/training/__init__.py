"""Training of Sonde, the encoder that ships with the package: from random numbers to weights, no dataset involved.

    python -m research.training --out out/sonde                 under two minutes of one GPU
    python -m research.training --out out/tiny --preset tiny       a few seconds of any machine

Everything a model ever sees here is drawn by `research.training.data`: carriers, mechanisms and plants. No recording of
any dataset of the benchmark, and none of its simulators, takes part.
"""
