package layers

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// EncryptLinear encodes a matrix's diagonals, has several at a time encrypted, as they are sent, and uses them in the
// transform's order.
func EncryptLinear(params ckks.Parameters, t *packing.Transform, matrix *network.Matrix, batch, level int, scale rlwe.Scale, encrypt func(*rlwe.Plaintext) ([]byte, error), use func([]byte) error) error {
	take := func(_ packing.Diagonal, data []byte) error { return use(data) }
	return eachDiagonal(params, t, matrix, batch, level, scale, encrypt, take)
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
		made.take(diagonal, factor{parts: []plaintext{pack(ringQ, ct.Value[0]), pack(ringQ, ct.Value[1])}})
	}
	return made, nil
}

// combine is the sum of products of one giant step, relinearised where the matrix is encrypted.
func (l *Linear) combine(eval *ckks.Evaluator, s sum, rotated []map[int]*rlwe.Ciphertext) (*rlwe.Ciphertext, error) {
	params := *eval.GetParameters()
	ringQ := params.RingQ().AtLevel(l.level)
	own, degree := len(s.products[0].parts), rotated[s.products[0].input][0].Degree()
	total := ckks.NewCiphertext(params, own-1+degree, l.level)
	factors, polys := make([]plaintext, len(s.products)), make([]ring.Poly, len(s.products))
	for mine := range own {
		for theirs := range 1 + degree {
			for i, product := range s.products {
				factors[i], polys[i] = product.parts[mine], rotated[product.input][product.baby].Value[theirs]
			}
			accumulate(ringQ, factors, polys, total.Value[mine+theirs])
		}
	}
	if total.Degree() < 2 {
		return total, nil // of two factors, whoever evaluates knows one
	}
	return eval.RelinearizeNew(total)
}
