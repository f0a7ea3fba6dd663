package layers

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/network"
)

// Square is sign * x^2 + offset of each ciphertext, one level down.
func Square(eval *ckks.Evaluator, node *network.Node, inputs []*rlwe.Ciphertext) ([]*rlwe.Ciphertext, error) {
	return each(inputs, func(x *rlwe.Ciphertext) (*rlwe.Ciphertext, error) {
		made, err := Multiply(eval, x, x)
		if err != nil {
			return nil, err
		}
		if node.Sign < 0 {
			if err := eval.Mul(made, -1, made); err != nil {
				return nil, err
			}
		}
		return made, eval.Add(made, node.Offset, made)
	})
}

// Products multiplies ciphertexts pairwise, one level down.
func Products(eval *ckks.Evaluator, a, b []*rlwe.Ciphertext) ([]*rlwe.Ciphertext, error) {
	made := make([]*rlwe.Ciphertext, len(a))
	err := parallel(len(a), func(i int) (err error) {
		made[i], err = Multiply(eval, a[i], b[i])
		return err
	})
	return made, err
}

// Multiply is a product, relinearised and rescaled.
func Multiply(eval *ckks.Evaluator, a, b *rlwe.Ciphertext) (*rlwe.Ciphertext, error) {
	made, err := eval.MulRelinNew(a, b)
	if err != nil {
		return nil, err
	}
	return made, eval.Rescale(made, made)
}

func each(inputs []*rlwe.Ciphertext, compute func(*rlwe.Ciphertext) (*rlwe.Ciphertext, error)) ([]*rlwe.Ciphertext, error) {
	made := make([]*rlwe.Ciphertext, len(inputs))
	err := parallel(len(inputs), func(i int) (err error) {
		made[i], err = compute(inputs[i])
		return err
	})
	return made, err
}
