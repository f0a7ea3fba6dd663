"""Suite `stream` studied: what permuted tensors tell, scaling of parameters, larger pipelines."""
