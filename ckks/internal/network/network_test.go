package network_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"privet/ckks/internal/network"
	"privet/ckks/internal/program"
	"privet/ckks/internal/testmodel"
)

// affine computes an argument of a node.
func affine(n *network.Network, argument network.Expression, x []float64) []float64 {
	made := make([]float64, argument.Size)
	copy(made, argument.Bias)
	for _, term := range argument.Terms {
		source := value(n, term.Node, x)
		for row := range made {
			for at := term.Matrix.Start[row]; at < term.Matrix.Start[row+1]; at++ {
				made[row] += term.Matrix.Value[at] * source[term.Matrix.Column[at]]
			}
		}
	}
	return made
}

// value computes a node of a network in the clear, as the ciphertexts' side sees it.
func value(n *network.Network, index int, x []float64) []float64 {
	node := n.Nodes[index]
	if node.Kind == network.Input {
		return x
	}
	made := affine(n, node.Arguments[0], x)
	if node.Kind == network.Product {
		for i, factor := range affine(n, node.Arguments[1], x) {
			made[i] *= factor
		}
	}
	if node.Kind != network.Polynomial {
		return made
	}
	for i, t := range made {
		if node.Degree == 2 {
			made[i] = node.Sign*t*t + node.Offset
			continue
		}
		older, newer, total := 1.0, t, node.Coefficients[0]
		for _, coefficient := range node.Coefficients[1:] {
			total += coefficient * newer
			older, newer = newer, 2*t*newer-older
		}
		made[i] = total
	}
	return made
}

func TestNetworksComputeTheirProgram(t *testing.T) {
	for degree := 1; degree <= 5; degree++ {
		sample := testmodel.New(degree, uint64(degree))
		parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
		n, err := network.Build(parsed, weights)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float64, testmodel.Inputs)
		for i := range x {
			x[i] = math.Cos(float64(i))
		}
		got, expected := value(n, len(n.Nodes)-1, x), sample.Run(x)
		for i := range expected {
			if math.Abs(got[i]-expected[i]) > 1e-9 {
				t.Errorf("degree %d, output %d: %v, not %v", degree, i, got[i], expected[i])
			}
		}
	}
}

// withAndWithoutWeights is what the holder of a model builds of it, and what everybody else does.
func withAndWithoutWeights(t *testing.T, sample testmodel.Program) (full, structure *network.Network) {
	t.Helper()
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	var err error
	full, err = network.Build(parsed, weights)
	if err != nil {
		t.Fatal(err)
	}
	structure, err = network.Build(parsed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return full, structure
}

func TestStructureDependsOnNoWeight(t *testing.T) {
	full, structure := withAndWithoutWeights(t, testmodel.New(3, 1))
	for i, node := range full.Nodes {
		for k, argument := range node.Arguments {
			if argument.Terms[0].Matrix.Entries() != structure.Nodes[i].Arguments[k].Terms[0].Matrix.Entries() {
				t.Errorf("node %d has other entries with weights than without", i)
			}
		}
	}
}

// TestLargeProgramsAreRefusedBeforeTheyAreBuilt: a peer's program may be consistent and still too large.
func TestLargeProgramsAreRefusedBeforeTheyAreBuilt(t *testing.T) {
	const header = `{"format":"privet-program","version":1,"model":"large","ring_bits":50,"scale_bits":12,"weight_bits":16,
		"weights_commitment":"","inputs":[{"name":"x","value":0,"magnitude":1.0}],"outputs":[{"name":"y","value":%d,"client":null}],`
	dense := func(name string, in, from, to int) string {
		return fmt.Sprintf(`{"op":"dense","name":"%s","inputs":[%d],"output":%d,"weight":"w","weight_shape":[%d,%d],"bias":null}`,
			name, in, in+1, from, to)
	}
	shape := func(size int) string { return fmt.Sprintf(`{"shape":[1,%d],"scale":12}`, size) }
	for name, text := range map[string]string{
		"a value": fmt.Sprintf(header, 0) + `"values":[` + shape(1<<23) + `],"operations":[]}`,
		"a layer": fmt.Sprintf(header, 1) + `"values":[` + shape(1<<14) + "," + shape(1<<14) + `],"operations":[` +
			dense("a", 0, 1<<14, 1<<14) + `]}`,
		"a product of layers": fmt.Sprintf(header, 2) + `"values":[` + shape(1<<15) + "," + shape(4) + "," + shape(1<<15) +
			`],"operations":[` + dense("a", 0, 1<<15, 4) + "," + dense("b", 1, 4, 1<<15) + `]}`,
	} {
		parsed, err := program.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := network.Build(parsed, nil); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAValueThatIsMultipliedIsComputedOnce(t *testing.T) {
	sample := testmodel.NewGate(3)
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	for _, known := range []*program.Weights{nil, weights} {
		n, err := network.Build(parsed, known)
		if err != nil {
			t.Fatal(err)
		}
		layers := 0
		for _, node := range n.Nodes {
			for _, argument := range node.Arguments {
				if !argument.Trivial() {
					layers++
				}
			}
		}
		if layers != 2 {
			t.Errorf("%d linear layers where the model has two", layers)
		}
		if known == nil {
			continue
		}
		x := make([]float64, testmodel.Inputs)
		for i := range x {
			x[i] = math.Sin(float64(i))
		}
		got, expected := value(n, len(n.Nodes)-1, x), sample.Run(x)
		for k := range expected {
			if !(math.Abs(got[k]-expected[k]) < 1e-9) {
				t.Errorf("output %d is %v, not %v", k, got[k], expected[k])
			}
		}
	}
}
