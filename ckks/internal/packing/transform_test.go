package packing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"privet/ckks/internal/network"
)

const batch = 2

// apply computes in the clear what a transform computes on ciphertexts: baby and giant steps, folds and all.
func apply(t *testing.T, transform *Transform, matrix *network.Matrix, inputs [][]float64) [][]float64 {
	slots := transform.From.Features * batch
	outputs := make([][]float64, transform.To.Ciphertexts)
	for i := range outputs {
		outputs[i] = make([]float64, slots)
	}
	err := transform.Plaintexts(matrix, func(p Plaintext) error {
		baby := p.Shift % transform.Step
		giant := p.Shift - baby
		product := make([]float64, slots)
		for slot := range product {
			product[slot] = p.Places[slot/batch] * inputs[p.Input][(slot+baby*batch)%slots]
		}
		for slot := range product {
			outputs[p.Output][slot] += product[(slot+giant*batch)%slots]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, fold := range transform.Folds {
		for _, output := range outputs {
			before := append([]float64(nil), output...)
			for slot := range output {
				output[slot] += before[(slot+fold*batch)%slots]
			}
		}
	}
	return outputs
}

func random(rng *rand.Rand, rows, columns int, density float64) *network.Matrix {
	m := &network.Matrix{Rows: rows, Columns: columns, Start: []int32{0}}
	for range rows {
		for column := range columns {
			if rng.Float64() < density {
				m.Column = append(m.Column, int32(column))
				m.Value = append(m.Value, rng.NormFloat64())
			}
		}
		m.Start = append(m.Start, int32(len(m.Column)))
	}
	return m
}

func multiply(m *network.Matrix, x []float64) []float64 {
	y := make([]float64, m.Rows)
	for row := range y {
		for at := m.Start[row]; at < m.Start[row+1]; at++ {
			y[row] += m.Value[at] * x[m.Column[at]]
		}
	}
	return y
}

func weigh(t *Transform) float64 {
	counts := t.Count()
	return float64(counts.Hoisted + 2*counts.Rotations)
}

// images are layouts of an image of 3 x 5 x 4 pixels.
func images(features int) []Layout {
	shape := []int{3, 5, 4}
	all := []Layout{Flat(60, features), Phases(shape, 2, features)}
	for _, side := range []int{4, 8, 16} {
		for gap := 1; gap*4 <= side; gap *= 2 {
			for _, fill := range []bool{false, true} {
				if layout, ok := Grid(shape, side, gap, fill, features); ok {
					all = append(all, layout)
				}
			}
		}
	}
	if layout, ok := Skewed(60, features, 64); ok {
		all = append(all, layout)
	}
	return all
}

func TestTransformsComputeTheirMatrixBetweenAllLayouts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	planned := 0
	for _, features := range []int{16, 64, 128, 512, 1024} {
		for _, rows := range []int{5, 60, 64} {
			outs := []Layout{Flat(rows, features)}
			if rows == 60 {
				outs = images(features)
			}
			matrix := random(rng, rows, 60, 0.3)
			for _, from := range images(features) {
				for _, to := range outs {
					transform, ok := Plan(matrix, from, to, weigh)
					if !ok {
						continue
					}
					planned++
					t.Run(fmt.Sprintf("%d %s to %d %s", features, from.Name, rows, to.Name), func(t *testing.T) {
						check(t, rng, transform, matrix)
					})
				}
			}
		}
	}
	if planned < 300 {
		t.Errorf("only %d transforms were planned", planned)
	}
}

func check(t *testing.T, rng *rand.Rand, transform *Transform, matrix *network.Matrix) {
	samples := make([][]float64, batch)
	for i := range samples {
		samples[i] = make([]float64, matrix.Columns)
		for k := range samples[i] {
			samples[i][k] = rng.NormFloat64()
		}
	}
	slots := apply(t, transform, matrix, transform.From.Fill(samples, batch))
	expected := make([][]float64, batch)
	for i := range expected {
		expected[i] = multiply(matrix, samples[i])
	}
	for i, values := range transform.To.Fill(expected, batch) {
		for slot := range values {
			if math.Abs(values[slot]-slots[i][slot]) > 1e-9 {
				t.Fatalf("ciphertext %d, slot %d: %v, not %v", i, slot, slots[i][slot], values[slot])
			}
		}
	}
	taken := transform.To.Take(slots, batch, batch)
	for i := range taken {
		for k := range taken[i] {
			if math.Abs(taken[i][k]-expected[i][k]) > 1e-9 {
				t.Fatalf("sample %d, element %d: %v, not %v", i, k, taken[i][k], expected[i][k])
			}
		}
	}
}

func TestSkewTakesFewerDiagonals(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	matrix := random(rng, 64, 100, 1)
	plain, _ := Plan(matrix, Flat(100, 1024), Flat(64, 1024), weigh)
	layout, ok := Skewed(100, 1024, 64)
	if !ok {
		t.Fatal("no skewed layout")
	}
	skewed, ok := Plan(matrix, layout, Flat(64, 1024), weigh)
	if !ok || len(skewed.Diagonals) != 8 || len(plain.Diagonals) != 64 {
		t.Errorf("%d diagonals with skew, %d without", len(skewed.Diagonals), len(plain.Diagonals))
	}
}

// TestRepetitionsAreSkewed rearranges a value for dense layers, also for one with fewer outputs than there are repetitions.
func TestRepetitionsAreSkewed(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	identity := &network.Matrix{Rows: 60, Columns: 60, Start: []int32{0}}
	for i := range int32(60) {
		identity.Column, identity.Value = append(identity.Column, i), append(identity.Value, 1)
		identity.Start = append(identity.Start, i+1)
	}
	for _, outputs := range []int{64, 30, 8, 1} {
		skewed, ok := Skewed(60, 1024, PowerOfTwo(outputs))
		if !ok {
			t.Fatalf("no skewed layout for %d outputs", outputs)
		}
		rearranged, ok := Plan(identity, Flat(60, 1024), skewed, weigh)
		if !ok || len(rearranged.Diagonals) > 16 || len(rearranged.Folds) > 0 {
			t.Fatalf("%d outputs: %d masks, %v", outputs, len(rearranged.Diagonals), ok)
		}
		check(t, rng, rearranged, identity)
		dense := random(rng, outputs, 60, 1)
		applied, ok := Plan(dense, skewed, Flat(outputs, 1024), weigh)
		if !ok || len(applied.Diagonals) != max(1, PowerOfTwo(outputs)/16) {
			t.Fatalf("%d outputs: %d products, %v", outputs, len(applied.Diagonals), ok)
		}
		check(t, rng, applied, dense)
	}
	if _, ok := Plan(random(rng, 60, 60, 0.5), Flat(60, 1024), mustSkew(t), weigh); ok {
		t.Error("a matrix of weights was taken for a rearrangement")
	}
}

func mustSkew(t *testing.T) Layout {
	layout, ok := Skewed(60, 1024, 64)
	if !ok {
		t.Fatal("no skewed layout")
	}
	return layout
}

func TestRotationsAreThoseOfTheSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	transform, _ := Plan(random(rng, 60, 60, 0.5), Flat(60, 256), Flat(60, 256), weigh)
	counts := transform.Count()
	if len(transform.Rotations()) > counts.Keys || counts.Keys > 2+counts.Hoisted+counts.Rotations {
		t.Errorf("%d rotations, counted %+v", len(transform.Rotations()), counts)
	}
	babies, giants := 0, 0
	for _, list := range transform.Babies() {
		babies += len(list)
	}
	for _, list := range transform.Giants() {
		giants += len(list)
	}
	if babies != counts.Hoisted || giants+len(transform.Folds) != counts.Rotations {
		t.Errorf("%d babies and %d giants, counted %+v", babies, giants, counts)
	}
}

// TestPlacesWithoutAnElementAreZero has values of every size go into layouts of results, which have a free place in each ciphertext.
func TestPlacesWithoutAnElementAreZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const features = 16
	if _, ok := Guarded(1, 1); ok {
		t.Error("a ciphertext of one place has room for nothing beside it")
	}
	for size := 1; size <= 50; size++ {
		to, ok := Guarded(size, features)
		if !ok {
			t.Fatal(size)
		}
		for _, inputs := range []int{3, 16, 40} {
			from, matrix := Flat(inputs, features), random(rng, size, inputs, 0.8)
			transform, ok := Plan(matrix, from, to, weigh)
			if !ok {
				t.Fatalf("%d to %d elements", inputs, size)
			}
			check(t, rng, transform, matrix)
			slots := make([][]float64, from.Ciphertexts)
			for i := range slots {
				slots[i] = make([]float64, features*batch)
				for k := range slots[i] {
					slots[i][k] = rng.NormFloat64()
				}
			}
			made := apply(t, transform, matrix, slots)
			for ciphertext, free := range to.Free() {
				if len(free) == 0 {
					t.Errorf("%d elements: ciphertext %d is full", size, ciphertext)
				}
				for _, place := range free {
					if made[ciphertext][place*batch] != 0 {
						t.Errorf("%d to %d elements: place %d of ciphertext %d holds something", inputs, size, place, ciphertext)
					}
				}
			}
		}
	}
}
