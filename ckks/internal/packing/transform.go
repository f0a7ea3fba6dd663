package packing

import (
	"fmt"
	"math/bits"
	"slices"

	"privet/ckks/internal/network"
)

// Diagonal names the products of one output ciphertext with one input ciphertext rotated by Shift places.
type Diagonal struct{ Output, Input, Shift int }

// Transform is a matrix between two layouts: its generalised diagonals, how they are cut into baby and giant steps, and
// the folds that add up partial sums.
//
// A diagonal's shift is giant + baby with 0 <= baby < Step and giant a multiple of Step. Inputs are rotated by their babies
// (all from one decomposition, "hoisted"); each output adds up its products per giant and rotates those sums.
type Transform struct {
	From, To  Layout
	Diagonals []Diagonal
	Step      int
	Folds     []int
	fill      int
}

// maxDiagonals bounds the diagonals that a transform may have, whether or not it needs them.
const maxDiagonals = 1 << 26

// Plan finds the diagonals that a matrix needs; ok is false if the layouts do not go together.
func Plan(matrix *network.Matrix, from, to Layout, weigh func(*Transform) float64) (transform *Transform, ok bool) {
	if from.Features != to.Features || (to.Skew > 0 && !to.skews(from, matrix)) || (from.Skew > 0 && !from.suits(to)) {
		return nil, false
	}
	t := &Transform{From: from, To: to}
	p, q := from.Period, to.Period
	t.fill = max(p, q)
	summed := p
	if to.Skew > 0 {
		t.fill = to.Features
	}
	if from.Skew > 0 {
		t.fill, summed = from.Features, from.Features
	}
	for fold := q; fold < summed; fold *= 2 {
		t.Folds = append(t.Folds, fold)
	}
	if to.Ciphertexts*from.Ciphertexts > maxDiagonals/min(p, q) {
		return nil, false
	}
	seen := make([]bool, to.Ciphertexts*from.Ciphertexts*min(p, q))
	t.each(matrix, func(_ int32, d Diagonal, _ int) {
		seen[(d.Output*from.Ciphertexts+d.Input)*min(p, q)+d.Shift] = true
	})
	for at, found := range seen {
		if found {
			pair := at / min(p, q)
			t.Diagonals = append(t.Diagonals, Diagonal{pair / from.Ciphertexts, pair % from.Ciphertexts, at % min(p, q)})
		}
	}
	t.chooseStep(weigh)
	return t, true
}

// Name is the same for transforms between the same layouts of values of the same size at a level.
func (t *Transform) Name(level int) string {
	return fmt.Sprint(t.From.Name, "|", t.To.Name, "|", len(t.To.Place), "|", t.Step, "|", level)
}

// suits tells whether a skewed layout was made for a layer into `to`.
func (l Layout) suits(to Layout) bool {
	return to.Ciphertexts == 1 && to.Period <= l.Period && l.Skew == max(1, to.Period*l.Period/l.Features)
}

// skews tells whether a skewed layout is made of the repetitions in `from` by nothing but shifting them.
func (l Layout) skews(from Layout, matrix *network.Matrix) bool {
	return from.Skew == 0 && from.Ciphertexts == 1 && from.Period == l.Period && slices.Equal(from.Place, l.Place) && matrix.IsIdentity()
}

func (t *Transform) chooseStep(weigh func(*Transform) float64) {
	best, least := 1, 0.0
	steps := []int{}
	for step := 1; step <= t.From.Features; step *= 2 {
		steps = append(steps, step)
	}
	if t.From.Stride > 0 && t.From.Stride == t.To.Stride {
		steps = append(steps, t.From.Stride)
	}
	for _, step := range steps {
		t.Step = step
		if cost := weigh(t); step == 1 || cost < least {
			best, least = step, cost
		}
	}
	t.Step = best
}

// each visits the matrix's entries with the diagonal and the place in its plaintext that each belongs to.
func (t *Transform) each(matrix *network.Matrix, visit func(at int32, diagonal Diagonal, place int)) {
	p, q, features := t.From.Period, t.To.Period, t.From.Features
	m := min(p, q)
	if t.To.Skew > 0 {
		for element, at := range t.To.Place {
			_, places := t.To.slots(element)
			for _, place := range places {
				visit(int32(element), Diagonal{0, 0, modulo(int(at)-place, p)}, place)
			}
		}
		return
	}
	for row := range matrix.Rows {
		out := int(t.To.Place[row])
		output := 0
		if t.To.Ciphertexts > 1 {
			output, out = out/features, out%features
		}
		for at := matrix.Start[row]; at < matrix.Start[row+1]; at++ {
			in, input := int(t.From.Place[matrix.Column[at]]), 0
			if t.From.Ciphertexts > 1 {
				input, in = in/features, in%features
			}
			shift := modulo(in-out, m)
			place := out
			switch {
			case t.From.Skew > 0:
				copy := shift / t.From.Skew
				shift %= t.From.Skew
				place = modulo(copy*p+modulo(in-copy*t.From.Skew, p)-shift, features)
			case p >= q:
				place = modulo(in-shift, p)
			}
			visit(at, Diagonal{output, input, shift}, place)
		}
	}
}

// Plaintext is one diagonal: a value for each place of its output.
type Plaintext struct {
	Diagonal
	Places []float64
}

// Plaintexts are the diagonals filled with the matrix's values, each rotated back by its giant step.
func (t *Transform) Plaintexts(matrix *network.Matrix, use func(Plaintext) error) error {
	features := t.From.Features
	order := make(map[Diagonal]int, len(t.Diagonals))
	for i, diagonal := range t.Diagonals {
		order[diagonal] = i
	}
	// A few diagonals at a time, so that the values of all never lie in memory at once.
	chunk := max(1, (1<<22)/features)
	for first := 0; first < len(t.Diagonals); first += chunk {
		places := make([][]float64, min(chunk, len(t.Diagonals)-first))
		for i := range places {
			places[i] = make([]float64, features)
		}
		t.each(matrix, func(at int32, diagonal Diagonal, place int) {
			index := order[diagonal] - first
			if index < 0 || index >= len(places) {
				return
			}
			giant := diagonal.Shift - diagonal.Shift%t.Step
			for ; place < features; place += t.fill {
				places[index][(place+giant)%features] += matrix.Value[at]
			}
		})
		for i, values := range places {
			if err := use(Plaintext{t.Diagonals[first+i], values}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Babies are the rotations, other than none, of an input ciphertext.
func (t *Transform) Babies() [][]int {
	return t.rotations(t.From.Ciphertexts, func(d Diagonal) (int, int) { return d.Input, d.Shift % t.Step })
}

// Giants are the rotations, other than none, of an output ciphertext's sums.
func (t *Transform) Giants() [][]int {
	return t.rotations(t.To.Ciphertexts, func(d Diagonal) (int, int) { return d.Output, d.Shift - d.Shift%t.Step })
}

// rotations are those, other than none, that `of` tells of each diagonal, by the ciphertext that they are of.
func (t *Transform) rotations(ciphertexts int, of func(Diagonal) (ciphertext, places int)) [][]int {
	found := make([][]int, ciphertexts)
	for _, d := range t.Diagonals {
		if ciphertext, places := of(d); places != 0 && !slices.Contains(found[ciphertext], places) {
			found[ciphertext] = append(found[ciphertext], places)
		}
	}
	return found
}

// Rotations are all places by which a ciphertext is rotated.
func (t *Transform) Rotations() []int {
	all := slices.Clone(t.Folds)
	for _, rotations := range append(t.Babies(), t.Giants()...) {
		all = append(all, rotations...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Counts are what a transform takes: products with plaintexts, rotations of inputs that share a decomposition, those
// decompositions, and other rotations.
type Counts struct{ Products, Hoisted, Decompositions, Rotations, Keys int }

// Count counts without listing: it is called for many steps and layouts.
func (t *Transform) Count() Counts {
	counts := Counts{Products: len(t.Diagonals), Rotations: len(t.Folds) * t.To.Ciphertexts}
	size := t.From.Features
	babies, giants := newSets(t.From.Ciphertexts, t.Step), newSets(t.To.Ciphertexts, size/t.Step)
	anyBaby, anyGiant := newSets(1, t.Step), newSets(1, size/t.Step)
	for _, d := range t.Diagonals {
		baby, giant := d.Shift%t.Step, d.Shift/t.Step
		babies.add(d.Input, baby)
		giants.add(d.Output, giant)
		anyBaby.add(0, baby)
		anyGiant.add(0, giant)
	}
	for input := range t.From.Ciphertexts {
		if count := babies.count(input); count > 0 {
			counts.Hoisted += count
			counts.Decompositions++
		}
	}
	for output := range t.To.Ciphertexts {
		counts.Rotations += giants.count(output)
	}
	counts.Keys = anyBaby.count(0) + anyGiant.count(0) + len(t.Folds)
	return counts
}

// sets are sets of small numbers, of which 0 is never counted.
type sets struct {
	words []uint64
	width int
}

func newSets(count, size int) sets {
	width := size/64 + 1
	return sets{make([]uint64, count*width), width}
}

func (s sets) add(set, number int) { s.words[set*s.width+number/64] |= 1 << (number % 64) }

func (s sets) count(set int) int {
	total := 0
	for i, word := range s.words[set*s.width : (set+1)*s.width] {
		if i == 0 {
			word &^= 1
		}
		total += bits.OnesCount64(word)
	}
	return total
}
