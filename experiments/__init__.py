"""The paper's experiments on real data: `make paper`."""
