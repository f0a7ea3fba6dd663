"""The service: many clients, many models, preparation overlapped with inference."""
