package layers

import (
	"fmt"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/polynomial"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/bignum"
)

// Chebyshev is sum_k coefficients[k] T_k(x) of each ciphertext at scale `target`, ceil(log2(degree + 1)) levels down.
//
// SiLU, softplus and GELU are a multiple of x plus an even function; such a series is evaluated as
// c_1 x + sum_k c_2k T_k(T_2(x)), half the degree in as many levels.
func Chebyshev(eval *ckks.Evaluator, name string, coefficients []float64, inputs []*rlwe.Ciphertext, target rlwe.Scale) ([]*rlwe.Ciphertext, error) {
	return each(inputs, func(x *rlwe.Ciphertext) (made *rlwe.Ciphertext, err error) {
		if len(coefficients) > 4 && vanish(coefficients[3:]) && !vanish(coefficients[2:]) {
			made, err = evenAndLinear(eval, coefficients, x, target)
		} else {
			made, err = series(eval, coefficients, x, target)
		}
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", name, err)
		}
		return made, nil
	})
}

// vanish tells whether every other coefficient, from the first, is zero.
func vanish(coefficients []float64) bool {
	for k := 0; k < len(coefficients); k += 2 {
		if coefficients[k] != 0 {
			return false
		}
	}
	return true
}

func series(eval *ckks.Evaluator, coefficients []float64, x *rlwe.Ciphertext, target rlwe.Scale) (*rlwe.Ciphertext, error) {
	sum := bignum.NewPolynomial(bignum.Chebyshev, coefficients, [2]float64{-1, 1})
	// Lattigo's flags say which powers there may be.
	sum.IsEven, sum.IsOdd = !vanish(coefficients), !vanish(coefficients[1:])
	return polynomial.NewEvaluator(*eval.GetParameters(), eval).Evaluate(x, sum, target)
}

func evenAndLinear(eval *ckks.Evaluator, coefficients []float64, x *rlwe.Ciphertext, target rlwe.Scale) (*rlwe.Ciphertext, error) {
	second, err := Multiply(eval, x, x)
	if err != nil {
		return nil, err
	}
	if err := eval.Add(second, second, second); err != nil {
		return nil, err
	}
	if err := eval.Add(second, -1, second); err != nil {
		return nil, err
	}
	var even []float64
	for k := 0; k < len(coefficients); k += 2 {
		even = append(even, coefficients[k])
	}
	made, err := series(eval, even, second, target)
	if err != nil {
		return nil, err
	}
	linear, err := multiple(eval, coefficients[1], x, made.Level(), target)
	if err != nil {
		return nil, err
	}
	made.Scale, linear.Scale = target, target
	return made, eval.Add(made, linear, made)
}

// multiple is a constant times x at a level and, exactly, a scale.
func multiple(eval *ckks.Evaluator, constant float64, x *rlwe.Ciphertext, level int, scale rlwe.Scale) (*rlwe.Ciphertext, error) {
	params := eval.GetParameters()
	made := eval.DropLevelNew(x, x.Level()-level-1)
	factor := scale.Mul(rlwe.NewScale(params.Q()[level+1])).Div(x.Scale)
	product := new(big.Float).Mul(&factor.Value, big.NewFloat(constant))
	whole, _ := product.Add(product, big.NewFloat(0.5)).Int(nil)
	ringQ := params.RingQ().AtLevel(level + 1)
	for part := range made.Value {
		ringQ.MulScalarBigint(made.Value[part], whole, made.Value[part])
	}
	made.Scale = scale.Mul(rlwe.NewScale(params.Q()[level+1]))
	return made, eval.Rescale(made, made)
}
