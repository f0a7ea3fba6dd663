"""The client's side of a service: an asynchronous client, and a local endpoint before it."""

from privet.gateway.client import ServiceClient
from privet.gateway.jobs import Notice
from privet.gateway.model import Model, Offer, Offered, Tensor, Terms

__all__ = ["Model", "Notice", "Offer", "Offered", "ServiceClient", "Tensor", "Terms"]
