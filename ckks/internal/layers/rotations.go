package layers

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// decompose cuts a ciphertext's second part into the digits that a key switch multiplies, once for many rotations.
func decompose(eval *ckks.Evaluator, ct *rlwe.Ciphertext) []ringqp.Poly {
	params := eval.GetParameters()
	level, special := ct.Level(), params.MaxLevelP()
	digits := make([]ringqp.Poly, params.BaseRNSDecompositionVectorSize(level, special))
	for i := range digits {
		digits[i] = params.RingQP().AtLevel(level, special).NewPoly()
	}
	eval.DecomposeNTT(level, special, params.PCount(), ct.Value[1], ct.IsNTT, digits)
	return digits
}
