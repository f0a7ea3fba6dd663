package packing

import (
	"math/rand/v2"
	"testing"

	"privet/ckks/internal/network"
)

// convolution has a kernel of 5 x 5 and stride 2, from an image of 28 x 28 to 5 of 13 x 13.
func convolution(rng *rand.Rand) *network.Matrix {
	m := &network.Matrix{Rows: 5 * 13 * 13, Columns: 28 * 28, Start: []int32{0}}
	for row := range m.Rows {
		y, x := row%169/13*2-1, row%13*2-1
		for tap := range 25 {
			down, right := y+tap/5, x+tap%5
			if down >= 0 && right >= 0 && down < 28 && right < 28 {
				m.Column = append(m.Column, int32(down*28+right))
				m.Value = append(m.Value, rng.NormFloat64())
			}
		}
		m.Start = append(m.Start, int32(len(m.Column)))
	}
	return m
}

func TestAStridedConvolutionFitsOneCiphertext(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	from, to := []int{1, 28, 28}, []int{5, 13, 13}
	tight, ok := NewTight(from, to, 2, 1024)
	if !ok {
		t.Fatal("there is no layout for 784 and 845 elements in 1024 places")
	}
	matrix := convolution(rng)
	transform, ok := Plan(matrix, tight.Phases(from), tight.Channels(to), weigh)
	if !ok {
		t.Fatal("the layouts do not go together")
	}
	if found := len(transform.Diagonals); found > 53 {
		t.Errorf("%d diagonals, where shifts that wrap around should leave 53", found)
	}
	check(t, rng, transform, matrix)
	for _, refused := range []struct{ step, features int }{{0, 1024}, {1, 1024}, {2, 512}} {
		if _, ok := NewTight(from, to, refused.step, refused.features); ok {
			t.Errorf("stride %d in %d places", refused.step, refused.features)
		}
	}
	if _, ok := NewTight([]int{1, 32, 32}, []int{5, 16, 16}, 2, 2048); ok {
		t.Error("images of 16 columns lie on grids")
	}
}
