package flood

import (
	"math/big"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// Lift gives the coefficients that a value of a period has, of a polynomial in coefficients, as the integers of least
// magnitude modulo the modulus of another ring, in NTT form. All others are zero.
func Lift(from *ring.Ring, poly ring.Poly, to *ring.Ring, period int) ring.Poly {
	step := from.N() / period
	integers := make([]big.Int, period)
	values := make([]*big.Int, period)
	for k := range values {
		values[k] = &integers[k]
	}
	from.PolyToBigintCentered(poly, step, values)
	made := to.NewPoly()
	to.SetCoefficientsBigint(values, made)
	for _, residues := range made.Coeffs {
		for k := period - 1; k > 0 && step > 1; k-- {
			residues[k*step], residues[k] = residues[k], 0
		}
	}
	to.NTT(made, made)
	return made
}
