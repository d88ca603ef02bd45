"""Documents of this repository: tables that published rows give, and the conclusions of the paper asked again."""
