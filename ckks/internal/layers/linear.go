// Package layers evaluates the layers of a network on ciphertexts: matrices by their diagonals, and polynomials.
package layers

import (
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// Linear is a matrix between two layouts, its diagonals encoded at one level and scale.
type Linear struct {
	transform *packing.Transform
	batch     int
	level     int
	scale     rlwe.Scale
	// sums are the products of an output that share a giant step.
	sums []sum
}

type sum struct {
	output, giant int
	products      []factor
}

// factor multiplies input ciphertext `input`, rotated by `baby` places, with a plaintext, which is one part, or in an encrypted
// matrix with the two parts of a ciphertext.
type factor struct {
	input, baby int
	parts       []plaintext
}

// EncodeLinear encodes a matrix for inputs at a level; scale is the plaintexts' own.
func EncodeLinear(params ckks.Parameters, t *packing.Transform, matrix *network.Matrix, batch, level int, scale rlwe.Scale) (*Linear, error) {
	made := &Linear{transform: t, batch: batch, level: level, scale: scale}
	packed := func(pt *rlwe.Plaintext) (plaintext, error) { return pack(params.RingQ().AtLevel(level), pt.Value), nil }
	return made, eachDiagonal(params, t, matrix, batch, level, scale, packed, func(d packing.Diagonal, p plaintext) error {
		made.take(d, factor{parts: []plaintext{p}})
		return nil
	})
}

// eachDiagonal makes something of a matrix's diagonals, encoded, a few at a time on all processors, and uses it in their order.
func eachDiagonal[T any](
	params ckks.Parameters, t *packing.Transform, matrix *network.Matrix, batch, level int, scale rlwe.Scale,
	work func(*rlwe.Plaintext) (T, error), use func(packing.Diagonal, T) error,
) error {
	const size = 64
	encoder, some, made := codec.New(params), make([]packing.Plaintext, 0, size), make([]T, size)
	flush := func() error {
		err := parallel(len(some), func(i int) error {
			pt, err := encode(encoder, params, some[i], batch, level, scale)
			if err == nil {
				made[i], err = work(pt)
			}
			return err
		})
		for i := 0; err == nil && i < len(some); i++ {
			err = use(some[i].Diagonal, made[i])
		}
		some = some[:0]
		return err
	}
	err := t.Plaintexts(matrix, func(p packing.Plaintext) error {
		if some = append(some, p); len(some) < size {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// encode encodes one diagonal for all samples.
func encode(encoder *ckks.Encoder, params ckks.Parameters, diagonal packing.Plaintext, batch, level int, scale rlwe.Scale) (*rlwe.Plaintext, error) {
	slots := make([]float64, len(diagonal.Places)*batch)
	for place, value := range diagonal.Places {
		for sample := range batch {
			slots[place*batch+sample] = value
		}
	}
	pt := ckks.NewPlaintext(params, level)
	pt.Scale = scale
	return pt, encoder.Encode(slots, pt)
}

// take adds a diagonal's factor to the sum of its output and giant step.
func (l *Linear) take(diagonal packing.Diagonal, f factor) {
	f.input, f.baby = diagonal.Input, diagonal.Shift%l.transform.Step
	giant := diagonal.Shift - f.baby
	at := slices.IndexFunc(l.sums, func(s sum) bool { return s.output == diagonal.Output && s.giant == giant })
	if at < 0 {
		at = len(l.sums)
		l.sums = append(l.sums, sum{output: diagonal.Output, giant: giant})
	}
	l.sums[at].products = append(l.sums[at].products, f)
}

// Apply multiplies the inputs, all at the linear layer's level, and does not rescale.
func (l *Linear) Apply(eval *ckks.Evaluator, inputs []*rlwe.Ciphertext) ([]*rlwe.Ciphertext, error) {
	rotated, err := l.rotate(eval, inputs)
	if err != nil {
		return nil, err
	}
	params := *eval.GetParameters()
	outputs := make([]*rlwe.Ciphertext, l.transform.To.Ciphertexts)
	turned := make([]*rlwe.Ciphertext, len(l.sums))
	scale := inputs[0].Scale.Mul(l.scale)
	err = parallel(len(l.sums), func(i int) error {
		made, err := l.combine(eval, l.sums[i], rotated)
		if err != nil {
			return err
		}
		made.Scale = scale
		turned[i] = made
		if giant := l.sums[i].giant; giant != 0 {
			return eval.Rotate(made, giant*l.batch, made)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ringQ := params.RingQ().AtLevel(l.level)
	for i, sum := range l.sums {
		if outputs[sum.output] == nil {
			outputs[sum.output] = turned[i]
			continue
		}
		for part := range 2 {
			ringQ.Add(outputs[sum.output].Value[part], turned[i].Value[part], outputs[sum.output].Value[part])
		}
	}
	return outputs, l.finish(eval, outputs, scale)
}

// finish folds partial sums, and gives outputs that no product reaches the value zero.
func (l *Linear) finish(eval *ckks.Evaluator, outputs []*rlwe.Ciphertext, scale rlwe.Scale) error {
	return parallel(len(outputs), func(i int) error {
		if outputs[i] == nil {
			outputs[i] = ckks.NewCiphertext(*eval.GetParameters(), 1, l.level)
			outputs[i].Scale = scale
			return nil
		}
		for _, fold := range l.transform.Folds {
			turned, err := eval.RotateNew(outputs[i], fold*l.batch)
			if err != nil {
				return err
			}
			if err := eval.Add(outputs[i], turned, outputs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// rotate gives each input rotated by each of its babies, all of an input's from one decomposition.
func (l *Linear) rotate(eval *ckks.Evaluator, inputs []*rlwe.Ciphertext) ([]map[int]*rlwe.Ciphertext, error) {
	if len(inputs) != l.transform.From.Ciphertexts {
		return nil, fmt.Errorf("%d ciphertexts for a layer that reads %d", len(inputs), l.transform.From.Ciphertexts)
	}
	rotated := make([]map[int]*rlwe.Ciphertext, len(inputs))
	babies := l.transform.Babies()
	for i, input := range inputs {
		if input.Level() != l.level || input.Degree() > 1 {
			return nil, fmt.Errorf("a ciphertext at level %d for a layer at level %d", input.Level(), l.level)
		}
		rotated[i] = map[int]*rlwe.Ciphertext{0: input}
		for _, baby := range babies[i] {
			rotated[i][baby] = ckks.NewCiphertext(*eval.GetParameters(), input.Degree(), l.level)
		}
	}
	// Inputs one after the other, so that only one decomposition lies in memory; its rotations side by side.
	for i, input := range inputs {
		if len(babies[i]) == 0 {
			continue
		}
		turn := l.turner(eval, input)
		err := parallel(len(babies[i]), func(k int) error {
			baby := babies[i][k]
			return turn(baby, rotated[i][baby])
		})
		if err != nil {
			return nil, err
		}
	}
	return rotated, nil
}

// turner rotates an input by places: an encrypted one by hoisted key switches, one that the evaluator knows (of a single
// part) without a key.
func (l *Linear) turner(eval *ckks.Evaluator, input *rlwe.Ciphertext) func(places int, into *rlwe.Ciphertext) error {
	params := eval.GetParameters()
	if input.Degree() == 0 {
		return func(places int, into *rlwe.Ciphertext) error {
			params.RingQ().AtLevel(l.level).AutomorphismNTT(input.Value[0], params.GaloisElement(places*l.batch), into.Value[0])
			return nil
		}
	}
	digits := decompose(eval, input)
	return func(places int, into *rlwe.Ciphertext) error {
		return eval.AutomorphismHoisted(l.level, input, digits, params.GaloisElement(places*l.batch), into)
	}
}
