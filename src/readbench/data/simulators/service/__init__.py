"""A simulated microservice system as a network of queues."""

from readbench.data.simulators.service.simulator import Service

__all__ = ["Service"]
