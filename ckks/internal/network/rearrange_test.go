package network_test

import (
	"math"
	"testing"

	"privet/ckks/internal/testmodel"
)

// TestRearrangedNetworksComputeTheSame compares values in the clear, and what a party without weights makes of it.
func TestRearrangedNetworksComputeTheSame(t *testing.T) {
	full, structure := withAndWithoutWeights(t, testmodel.New(2, 9))
	full = full.WithBareSquares()
	made, public := full.Rearranged(1<<10), structure.WithBareSquares().Rearranged(1<<10)
	copies := 0
	for index, node := range made.Nodes {
		if node.Public {
			copies++
		}
		if node.Public != public.Nodes[index].Public || node.Kind != public.Nodes[index].Kind {
			t.Errorf("node %d differs without weights", index)
		}
	}
	if copies == 0 || len(made.Nodes) != len(full.Nodes)+copies || len(public.Nodes) != len(made.Nodes) {
		t.Fatalf("%d copies in %d nodes of %d", copies, len(made.Nodes), len(full.Nodes))
	}
	if len(full.Rearranged(1).Nodes) != len(full.Nodes) {
		t.Error("values that are too large were copied")
	}
	x := make([]float64, testmodel.Inputs)
	for i := range x {
		x[i] = math.Cos(float64(i))
	}
	expected, got := value(full, len(full.Nodes)-1, x), value(made, len(made.Nodes)-1, x)
	for i := range expected {
		if math.Abs(expected[i]-got[i]) > 1e-12 {
			t.Errorf("output %d: %v, not %v", i, got[i], expected[i])
		}
	}
}
