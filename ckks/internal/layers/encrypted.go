package layers

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// EncodeDiagonals encodes a matrix's diagonals, in the transform's order, for `use` to encrypt.
func EncodeDiagonals(params ckks.Parameters, t *packing.Transform, matrix *network.Matrix, batch, level int, scale rlwe.Scale, use func(*rlwe.Plaintext) error) error {
	encoder := codec.New(params)
	return t.Plaintexts(matrix, func(p packing.Plaintext) error {
		slots := make([]float64, len(p.Places)*batch)
		for place, value := range p.Places {
			for sample := range batch {
				slots[place*batch+sample] = value
			}
		}
		pt := ckks.NewPlaintext(params, level)
		pt.Scale = scale
		if err := encoder.Encode(slots, pt); err != nil {
			return err
		}
		return use(pt)
	})
}

// TakeLinear takes over an encrypted matrix, a ciphertext for each of the transform's diagonals in order.
func TakeLinear(params ckks.Parameters, t *packing.Transform, batch, level int, scale rlwe.Scale, next func() (*rlwe.Ciphertext, error)) (*Linear, error) {
	made := &Linear{transform: t, batch: batch, level: level, scale: scale}
	ringQ := params.RingQ().AtLevel(level)
	for _, diagonal := range t.Diagonals {
		ct, err := next()
		if err != nil {
			return nil, err
		}
		parts := [2]ring.Poly{ct.Value[0], ct.Value[1]}
		for _, part := range parts {
			ringQ.MForm(part, part)
		}
		made.take(diagonal, factor{encrypted: &parts})
	}
	return made, nil
}

// combine is the sum of products of one giant step, relinearised where the matrix is encrypted.
func (l *Linear) combine(eval *ckks.Evaluator, s sum, rotated []map[int]*rlwe.Ciphertext) (*rlwe.Ciphertext, error) {
	params := *eval.GetParameters()
	if s.products[0].encrypted == nil {
		return l.add(params, s, rotated), nil
	}
	ringQ := params.RingQ().AtLevel(l.level)
	degree := rotated[s.products[0].input][0].Degree()
	total := ckks.NewCiphertext(params, 1+degree, l.level)
	for _, product := range s.products {
		from := rotated[product.input][product.baby]
		for mine, part := range product.encrypted {
			for theirs := range from.Value {
				ringQ.MulCoeffsMontgomeryThenAdd(part, from.Value[theirs], total.Value[mine+theirs])
			}
		}
	}
	if degree == 0 {
		return total, nil // a matrix times values that the evaluator knows
	}
	return eval.RelinearizeNew(total)
}
